#include "net/peer/state_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>

#include "fl_core/config/error.hpp"
#include "fl_core/config/regular_file.hpp"
#include "fl_core/state/checkpoint.hpp"
#include "net/wire/frame_rules.hpp"

namespace fl::net {

namespace fs = std::filesystem;

namespace {

class Unsynced final : public FileSystem {
 public:
  int fsync(int) override { return 0; }
};

}  // namespace

StateFolder::StateFolder(const fs::path& named, const fs::path& parent) : path_(named), is_private_(named.empty()) {
  std::error_code error;
  if (!is_private_) {
    fs::create_directories(path_, error);
    if (error) throw StoreError("cannot make the folder " + path_.string() + " (--state): " + error.message());
    constexpr std::uint64_t kMostBytes = 1024;
    if (fs::exists(token_file(), error)) take_token(read_regular_file(token_file(), {.bytes = kMostBytes}));
    return;
  }
  const fs::path folder = parent.empty() ? fs::temp_directory_path() : parent;
  fs::create_directories(folder, error);
  std::string name = (folder / "fedbits-join-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw StoreError("cannot make a folder in " + folder.string() + ": " + std::strerror(errno));
  path_ = name;
}

// A token of another length would be refused by every server, so it is as if there were none.
void StateFolder::take_token(const std::string& text) {
  if (text.size() == kTokenBytes)
    token_ = text;
  else
    damage_ = token_file().string() + " is damaged: it has " + std::to_string(text.size()) + " bytes instead of " +
              std::to_string(kTokenBytes) + ", and is left out";
}

StateFolder::~StateFolder() {
  std::error_code ignored;
  if (is_private_) fs::remove_all(path_, ignored);
}

FileSystem& StateFolder::system() const {
  static Unsynced unsynced;
  return is_private_ ? unsynced : FileSystem::real();
}

std::string StateFolder::advice() const {
  return is_private_ ? "with --state, another `fedbits join` could go on from here"
                     : "join again with --state " + path_.string() + " when it is back";
}

void StateFolder::keep_token(const std::string& token) {
  if (token == token_) return;
  token_ = token;
  std::error_code ignored;
  if (token.empty())
    fs::remove(token_file(), ignored);
  else if (!is_private_)
    write_atomically(token_file(), std::as_bytes(std::span(token_)));
}

}  // namespace fl::net
