// Native values in a bit stream at every bit of a byte: the same bytes as one field after another, and the same values back.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "compressors/codec/bit_stream.hpp"
#include "compressors/codec/values.hpp"

namespace fl::codec {
namespace {

template <class T>
class RawValues : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(RawValues, Precisions);

template <class T>
std::uint64_t bits_of_value(T value) {
  if constexpr (sizeof(T) == sizeof(float)) return std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<std::uint64_t>(static_cast<double>(value));
}

// Returns values with many different bits, zeros and numbers of both signs.
template <class T>
std::vector<T> some_values(std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = i % 7 == 3 ? T(0) : static_cast<T>(std::sin(1.0 + static_cast<double>(i)) * 1e3);
  return values;
}

constexpr std::size_t kMostValues = 70;
constexpr std::uint64_t kBefore = 0x55, kBehind = 0x2d;

TYPED_TEST(RawValues, HaveTheBytesOfOneFieldAfterAnother) {
  using T = TypeParam;
  for (unsigned before = 0; before < 16; ++before) {
    for (std::size_t count = 1; count <= kMostValues; ++count) {
      const std::vector<T> values = some_values<T>(count);
      std::vector<std::byte> whole, single;
      BitWriter writer(whole), one_by_one(single);
      for (BitWriter* each : {&writer, &one_by_one}) each->put(low_bits(kBefore, before), before);
      write_raw(writer, values.data(), count, kNativeWire<T>);
      for (const T value : values) one_by_one.put(bits_of_value(value), 8 * sizeof(T));
      for (BitWriter* each : {&writer, &one_by_one}) {
        each->put(kBehind, 6);
        each->finish();
      }
      ASSERT_EQ(whole, single) << before << " bits before " << count << " values";

      BitReader reader(whole);
      reader.skip(before);
      std::vector<T> back(count);
      ASSERT_EQ(read_raw(reader, back.data(), count, kNativeWire<T>), "");
      ASSERT_EQ(back, values) << before << " bits before " << count << " values";
      ASSERT_EQ(reader.get(6), kBehind);
    }
  }
}

TYPED_TEST(RawValues, AreRefusedIfTheyDoNotFit) {
  using T = TypeParam;
  const std::vector<T> values = some_values<T>(9);
  for (unsigned before = 0; before < 8; ++before) {
    std::vector<std::byte> bytes;
    BitWriter writer(bytes);
    writer.put(0, before);
    write_raw(writer, values.data(), values.size(), kNativeWire<T>);
    writer.finish();
    // A copy of its own, so that a read behind its end is seen.
    const std::vector<std::byte> cut(bytes.begin(), bytes.end() - 1);
    BitReader reader(cut);
    reader.skip(before);
    std::vector<T> back(values.size());
    EXPECT_NE(read_raw(reader, back.data(), back.size(), kNativeWire<T>), "") << before;
  }
}

TYPED_TEST(RawValues, NameTheFirstNumberThatIsNotFinite) {
  using T = TypeParam;
  for (unsigned before = 0; before < 8; ++before) {
    std::vector<T> values = some_values<T>(20);
    values[13] = std::numeric_limits<T>::infinity();
    values[17] = std::numeric_limits<T>::quiet_NaN();
    std::vector<std::byte> bytes;
    BitWriter writer(bytes);
    writer.put(0, before);
    write_raw(writer, values.data(), values.size(), kNativeWire<T>);
    writer.finish();
    BitReader reader(bytes);
    reader.skip(before);
    std::vector<T> back(values.size());
    EXPECT_EQ(read_raw(reader, back.data(), back.size(), kNativeWire<T>), "number 13 is infinite");
    EXPECT_EQ(reader.position(), before + 13 * 8 * sizeof(T));
  }
}

}  // namespace
}  // namespace fl::codec
