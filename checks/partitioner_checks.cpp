// The requirements on every partitioner, on data with labels, without labels, and with a natural partition.
#include <algorithm>
#include <initializer_list>
#include <memory>

#include "checks/check.hpp"
#include "checks/partitioner_cases.hpp"
#include "fl_core/config/error.hpp"

namespace fl::checks {
namespace {

// Computes the split. Returns false if the request is refused with ConfigError.
bool split_into(std::vector<Shard>& shards, const Partitioner& partitioner, const PartitionRequest& request) {
  try {
    shards = partitioner.split(request);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

void check_partition(const std::vector<Shard>& shards, std::size_t num_rows, std::size_t num_clients, FindingPlace& place) {
  if (!place.expect(shards.size() == num_clients, "there are not as many shards as clients")) return;
  std::vector<int> seen(num_rows, 0);
  for (const Shard& shard : shards) {
    place.expect(!shard.empty(), "a client has no rows");
    place.expect(std::is_sorted(shard.begin(), shard.end()), "a shard's rows do not ascend");
    for (const std::uint32_t row : shard) {
      if (!place.expect(row < num_rows, "a row is given out that does not exist")) return;
      ++seen[row];
    }
  }
  place.expect(std::ranges::find(seen, 0) == seen.end(), "a row is given to no client");
  place.expect(std::ranges::none_of(seen, [](int n) { return n > 1; }), "a row is given to more than one client");
}

std::string text_of(const Rows& rows, std::size_t n, std::uint64_t seed) {
  return std::to_string(rows.num_rows) + " rows, " + std::to_string(rows.num_classes) + " classes, " + std::to_string(n) +
         " clients, seed " + std::to_string(seed);
}

void rows_once(const std::string& part, Findings& findings) {
  FindingPlace outside(findings, part);
  std::size_t num_served = 0;
  struct Size {
    std::size_t num_rows, num_classes, num_clients;
  };
  for (const Size& size : std::initializer_list<Size>{{1000, 10, 7}, {1000, 2, 1}, {503, 3, 20}, {97, 97, 4}, {64, 1, 8}, {12, 3, 12}}) {
    const Rows rows(size.num_rows, size.num_classes, size.num_clients);
    const PreparedPartitioner partitioner(part, size.num_rows, size.num_clients);
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      FindingPlace place = outside.inside(text_of(rows, size.num_clients, seed));
      place.guard([&] {
        std::vector<Shard> shards;
        if (!split_into(shards, *partitioner, rows.request(size.num_clients, seed))) return;
        ++num_served;
        check_partition(shards, rows.num_rows, size.num_clients, place);
      });
    }
  }
  outside.expect(num_served > 0, "it refuses every request: 12 to 1000 rows, 1 to 97 classes, 1 to 20 clients");
}

void seeds(const std::string& part, Findings& findings) {
  FindingPlace place(findings, part + ", 1000 rows, 10 classes, 5 clients");
  place.guard([&] {
    const Rows rows(1000, 10, 5);
    const PreparedPartitioner partitioner(part, 1000, 5), its_own(part, 1000, 5);
    std::vector<Shard> first, second, other;
    if (!split_into(first, *partitioner, rows.request(5, 1))) return;
    place.expect(split_into(second, *partitioner, rows.request(5, 1)) && first == second, "the same seed gives another split");
    const bool alike = split_into(other, *its_own, rows.request(5, 1)) && first == other;
    place.expect(alike, "the same seed gives another split from a partitioner of its own");
  });
  // With few clients a rule may leave no randomness.
  FindingPlace among_many(findings, part + ", 1000 rows, 10 classes, 20 clients");
  among_many.guard([&] {
    const Rows rows(1000, 10, 20);
    const PreparedPartitioner partitioner(part, 1000, 20);
    std::vector<Shard> first, other;
    if (!split_into(first, *partitioner, rows.request(20, 1)) || !split_into(other, *partitioner, rows.request(20, 2))) return;
    const bool draws = (*partitioner).draws();
    among_many.expect(first != other || !draws, "another seed gives the same split; one that draws nothing says so with draws()");
    among_many.expect(first == other || draws, "another seed gives another split, although draws() says that nothing is drawn");
  });
}

void refusals(const std::string& part, Findings& findings) {
  if (part == "natural") return;  // the data fix its number of clients
  const Rows rows(10, 2, 5);
  const auto partitioner = make_partitioner(part, {});
  for (const std::size_t n : {0u, 11u}) {
    FindingPlace place(findings, part + ", 10 rows, " + std::to_string(n) + " clients");
    place.guard([&] {
      std::vector<Shard> shards;
      place.expect(!split_into(shards, *partitioner, rows.request(n)), "the request cannot be met, but no ConfigError is thrown");
    });
  }
}

void no_labels(const std::string& part, Findings& findings) {
  FindingPlace place(findings, part + ", 100 rows without labels, 5 clients");
  place.guard([&] {
    Rows rows(100, 2, 5);
    rows.label.clear();
    rows.num_classes = 0;
    std::vector<Shard> shards;
    if (split_into(shards, *make_partitioner(part, {}), rows.request(5))) check_partition(shards, 100, 5, place);
  });
}

}  // namespace

const std::vector<Check>& partitioner_checks() {
  static const std::vector<Check> checks = {
      {"rows", "every row goes to exactly one client, and no client is empty", rows_once},
      {"seeds", "the same seed gives the same split", seeds},
      {"refusals", "no clients, and more clients than rows, are refused with ConfigError", refusals},
      {"labels", "data without labels is split or refused with ConfigError", no_labels},
  };
  return checks;
}

}  // namespace fl::checks
