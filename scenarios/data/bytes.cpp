#include "scenarios/data/bytes.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "fl_core/config/error.hpp"

namespace fl {
namespace {

std::shared_ptr<const RegularFile> open(const std::filesystem::path& file, const MemoryLimit& memory) {
  try {
    return std::make_shared<const RegularFile>(open_regular_file(file, {memory.bytes(), memory.text()}));
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
}

void read_from(const RegularFile& file, std::uint64_t begin, std::span<std::byte> out) {
  try {
    file.read(begin, out);
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
}

// Other packings than gzip, by the bytes that they begin with, and what unpacks them.
struct Packing {
  std::string_view begin;
  const char *name, *command;
};
constexpr Packing kPackings[] = {{"BZh", "bzip2", "bunzip2 -k"},
                                 {"\3757zXZ", "xz", "unxz -k"},
                                 {"PK\x03\x04", "zip", "unzip"},
                                 {"\x28\xB5\x2F\xFD", "zstd", "unzstd"},
                                 {"7z\xBC\xAF\x27\x1C", "7z", "7z x"}};
constexpr std::size_t kLongestBegin = 6;

void refuse_other_packing(std::span<const std::byte> begin, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
  for (const Packing& packing : kPackings)
    if (text.starts_with(packing.begin))
      throw DataError(name + ": is packed with " + packing.name + ", and only gzip is unpacked here; unpack it first: " + packing.command +
                      " " + name);
}

std::string whole(DataReader reader) {
  if (reader.size_up_to(1) == 0) throw DataError(reader.name().string() + ": the file is empty");
  return std::move(reader).take();
}

// Checks a text and drops the mark in front of it.
std::string as_text(std::string bytes, const std::string& name) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (bytes.starts_with(kByteOrderMark)) bytes.erase(0, kByteOrderMark.size());
  if (bytes.empty()) throw DataError(name + ": the file is empty");
  const std::size_t zero = bytes.find('\0');
  if (zero == std::string::npos) return bytes;
  const std::size_t line = 1 + static_cast<std::size_t>(std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(zero), '\n'));
  const std::size_t end = zero == 0 ? std::string::npos : bytes.rfind('\n', zero - 1);
  throw DataError(name + ":" + std::to_string(line) + ":" + std::to_string(end == std::string::npos ? zero + 1 : zero - end) +
                  ": the byte 0 is no part of a text; save the file as UTF-8");
}

}  // namespace

DataReader::DataReader(const std::filesystem::path& file, const MemoryLimit& memory)
    : name_(file), memory_(memory), file_(open(file, memory)) {
  std::array<std::byte, kLongestBegin> begin{};
  const auto there = static_cast<std::size_t>(std::min<std::uint64_t>(file_->size(), begin.size()));
  if (there > 0) read_from(*file_, 0, std::span(begin).first(there));
  refuse_other_packing(begin, name_.string());
  const auto source = file_;
  if (is_gzip(begin))
    begin_unpacking({source->size(), [source](std::uint64_t at, std::span<std::byte> out) { read_from(*source, at, out); }});
}

DataReader::DataReader(std::span<const std::byte> bytes, const std::filesystem::path& name, const MemoryLimit& memory)
    : name_(name), memory_(memory), bytes_(bytes) {
  refuse_other_packing(bytes, name_.string());
  if (is_gzip(bytes))
    begin_unpacking(
        {bytes.size(), [bytes](std::uint64_t at, std::span<std::byte> out) { std::memcpy(out.data(), &bytes[at], out.size()); }});
}

void DataReader::begin_unpacking(PackedBytes packed) { gunzip_.emplace(std::move(packed), name_.string()); }

std::size_t DataReader::size_up_to(std::size_t enough) {
  if (!is_packed()) return file_ ? file_->size() : bytes_.size();
  const std::uint64_t most = memory_.bytes();
  gunzip_->fill(unpacked_, static_cast<std::size_t>(std::min<std::uint64_t>(enough, most + 1)));
  if (unpacked_.size() > most)
    throw DataError(name_.string() + ": unpacks to more than " + size_text(static_cast<double>(most)) + ", and " + memory_.text() +
                    "; its format allows " + size_text(static_cast<double>(enough - 1)) + " here");
  return std::min(unpacked_.size(), enough);
}

void DataReader::read(std::size_t begin, std::span<std::byte> out) const {
  if (out.empty()) return;
  if (is_packed())
    std::memcpy(out.data(), &unpacked_[begin], out.size());
  else if (file_)
    read_from(*file_, begin, out);
  else
    std::memcpy(out.data(), &bytes_[begin], out.size());
}

std::string DataReader::take() && {
  const std::size_t size = size_up_to(kMostPackedText + 1);
  if (is_packed()) {
    if (size > kMostPackedText)
      throw DataError(name_.string() + ": unpacks to more than " + size_text(static_cast<double>(kMostPackedText)) +
                      ", the most for packed data without a size of their own (" + memory_.text() + "); give the file unpacked");
    return std::move(unpacked_);
  }
  std::string bytes(size, '\0');
  read(0, std::as_writable_bytes(std::span<char>(bytes)));
  return bytes;
}

std::string read_data_file(const std::filesystem::path& file, const MemoryLimit& memory) { return whole(DataReader(file, memory)); }

std::string read_text_file(const std::filesystem::path& file, const MemoryLimit& memory) {
  return as_text(read_data_file(file, memory), file.string());
}

std::string unpack_data(std::span<const std::byte> bytes, const std::string& name, const MemoryLimit& memory) {
  return whole(DataReader(bytes, name, memory));
}

std::string unpack_text(std::span<const std::byte> bytes, const std::string& name, const MemoryLimit& memory) {
  return as_text(unpack_data(bytes, name, memory), name);
}

std::size_t rows_kept(std::size_t asked, std::size_t available, const std::filesystem::path& file) {
  if (asked > available)
    throw DataError(file.string() + ": rows = " + std::to_string(asked) + " were asked for, the file has " + std::to_string(available));
  return asked > 0 ? asked : available;
}

}  // namespace fl
