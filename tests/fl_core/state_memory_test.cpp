// Tests of the memory that state takes when few of many clients take part: the rows of the clients that were met, not the pages around
// them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <span>
#include <vector>

#include "fl_core/state/client_state.hpp"
#include "fl_core/state/server_state.hpp"

namespace fl {
namespace {

constexpr std::uint32_t kManyClients = 20'000, kFewMembers = 100, kFewRounds = 4;
constexpr std::size_t kWideRow = 7850;  // parameters: 31 KB, far below a huge page
constexpr std::size_t kStrideBytes = aligned_stride<float>(kWideRow) * sizeof(float);
constexpr std::size_t kTwoHugePages = std::size_t{4} << 20;  // the partly used first and last page of a region

// Returns the bytes of this process that are in memory.
std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t whole = 0, resident = 0;
  statm >> whole >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// Returns the cohort of a round: clients far apart, nobody twice.
std::vector<std::uint32_t> far_apart(std::uint32_t round) {
  std::vector<std::uint32_t> cohort;
  for (std::uint32_t k = 0; k < kFewMembers; ++k) cohort.push_back(k * (kManyClients / kFewMembers) + 37 * round);
  return cohort;
}

TEST(StateMemory, ClientStateTakesTheRowsOfTheClientsThatWereMet) {
  ClientState<float> table(kManyClients, kFewMembers, kWideRow);
  const std::size_t before = resident_bytes();
  table.declare({.name = "error", .owner = SlotOwner::client, .double_buffered = true});
  for (std::uint32_t round = 1; round <= kFewRounds; ++round) {
    table.open_round(far_apart(round));
    for (std::uint32_t k = 0; k < kFewMembers; ++k) {
      const std::span<float> fresh(table.shadow("error", k, 1).row(0), kWideRow);
      std::iota(fresh.begin(), fresh.end(), static_cast<float>(round + k));
      table.swap("error", k);
    }
  }
  const std::size_t rows = kFewRounds * kFewMembers + kFewMembers;  // and the shadows
  EXPECT_LE(resident_bytes() - before, rows * kStrideBytes + rows * kStrideBytes / 10 + kTwoHugePages);
  for (std::uint32_t k = 0; k < kFewMembers; ++k)
    for (std::uint32_t round = 1; round <= kFewRounds; ++round)
      EXPECT_EQ(table.of_client("error", far_apart(round)[k])[2], static_cast<float>(round + k + 2));
  EXPECT_TRUE(table.peek("error", 1).empty()) << "a client that was never met";
}

TEST(StateMemory, CopiesOnTheServerTakeTheRowsOfTheClientsThatWereMet) {
  ServerState<float> server(kManyClients, kWideRow);
  const std::size_t before = resident_bytes();
  server.declare({.name = "copy", .owner = SlotOwner::server_copy});
  for (std::uint32_t round = 1; round <= kFewRounds; ++round)
    for (const std::uint32_t client : far_apart(round)) {
      const std::span<float> row = server.copy("copy", client);
      std::iota(row.begin(), row.end(), static_cast<float>(client));
    }
  const std::size_t rows = kFewRounds * kFewMembers;
  EXPECT_LE(resident_bytes() - before, rows * kStrideBytes + rows * kStrideBytes / 10 + kTwoHugePages);
  for (const std::uint32_t client : far_apart(2)) EXPECT_EQ(server.copy("copy", client)[5], static_cast<float>(client + 5));
}

TEST(StateMemory, ACheckpointOfCopiesHasThoseThatAreNotZero) {
  ServerState<float> server(6, 3), back(6, 3);
  for (ServerState<float>* state : {&server, &back}) state->declare({.name = "copy", .owner = SlotOwner::server_copy});
  server.copy("copy", 4)[1] = 2;
  server.copy("copy", 1)[0] = -0.0f;
  EXPECT_EQ(server.copy("copy", 3)[0], 0);  // asked for, and zero
  Archive writing;
  server.persist(writing);
  Archive reading(writing.bytes());
  back.persist(reading);
  reading.finish();
  for (std::uint32_t client = 0; client < 6; ++client)
    for (std::size_t j = 0; j < 3; ++j)
      EXPECT_EQ(std::bit_cast<std::uint32_t>(back.copy("copy", client)[j]), std::bit_cast<std::uint32_t>(server.copy("copy", client)[j]));
}

}  // namespace
}  // namespace fl
