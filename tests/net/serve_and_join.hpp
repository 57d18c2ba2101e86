// A server and its peers as processes, in folders of their own.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/binary.hpp"

namespace fl::test {

class ServeAndJoin : public BinaryTest {
 protected:
  std::filesystem::path folder_of(const std::string& name) const {
    std::filesystem::create_directories(folder_ / name);
    return folder_ / name;
  }
  [[nodiscard]] std::unique_ptr<Process> serve(const std::string& out, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"serve", (folder_ / "small.toml").string(), "--listen", "127.0.0.1:0", "--insecure",
                                          "--out", (folder_ / out).string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<Process>(folder_of("server"), arguments);
  }
  [[nodiscard]] std::string address_of(Process& server) const {
    const std::string text = "listening at ";
    const auto said = [&] { return read("server/stdout.txt"); };
    server.wait_until([&] { return said().find('\n') != std::string::npos; });
    const std::size_t at = said().find(text);
    return at == std::string::npos ? "" : said().substr(at + text.size(), said().find('\n', at) - at - text.size());
  }
  [[nodiscard]] std::unique_ptr<Process> join(const std::string& name, const std::string& address, const std::string& clients,
                                              const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"join", address, "--clients", clients, "--insecure", "--patience", "20"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<Process>(folder_of(name), arguments);
  }
};

}  // namespace fl::test
