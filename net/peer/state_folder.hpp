// The folder of a peer's state: one that the user names and keeps, or a private one that is removed with this object.
#pragma once

#include <filesystem>
#include <string>

#include "fl_core/state/file_system.hpp"

namespace fl::net {

class StateFolder {
 public:
  // Opens `named`, or makes a private folder in `parent` ("" = the temporary folder) if `named` is empty. Throws StoreError.
  StateFolder(const std::filesystem::path& named, const std::filesystem::path& parent);
  ~StateFolder();
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Returns the system calls for its files. A private folder ends with the process, so its files need not survive a power cut.
  [[nodiscard]] FileSystem& system() const;
  // Returns what a user can do when the server is gone.
  [[nodiscard]] std::string advice() const;

  // The token of the session, "" = none. A named folder keeps it for the next process.
  [[nodiscard]] const std::string& token() const { return token_; }
  void keep_token(const std::string& token);
  // Returns what is damaged in the folder and was left out, or "".
  [[nodiscard]] const std::string& damage() const { return damage_; }

 private:
  void take_token(const std::string& text);
  [[nodiscard]] std::filesystem::path token_file() const { return path_ / "session"; }

  std::filesystem::path path_;
  bool is_private_;
  std::string token_, damage_;
};

}  // namespace fl::net
