// A peer reads its rows from a shard that another machine has made, and plays with them or refuses them; nothing else may happen.
//
// shard_file   The first byte selects the rest: if it is even, the rest is a whole file except for its checksum; if it is odd, the rest is
// a
//              list of changes, three bytes each (place, place, value), of a shard that this program wrote. The checksum is corrected, so
//              that the code behind its check is reached.
#include <cstring>

#include "fl_core/state/archive.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/experiment/server_data.hpp"
#include "scenarios/file/sweep.hpp"
#include "tests/fuzz/scratch_folder.hpp"

namespace {

using fl::fuzz::require;

// A shard states its numbers of features and classes, which its rows do not bound. What a model of them takes, `join --memory` bounds.
constexpr std::size_t kMostParameters = 1 << 16;

// The shard of two clients, as this program writes it, and the run that it is of.
struct Known {
  fl::Cell cell =
      fl::parse_cells(
          "name = 'shard'\nrounds = 1\nprecision = 'float64'\n[data]\nkind = 'synthetic'\nclients = 4\nfeatures = 3\nclasses = 2\n"
          "[partition]\nkind = 'natural'\nclients = 4\n[model]\nkind = 'logistic_regression'\nl2 = 0.01\n",
          "shard.toml")
          .front();
  fl::ThreadPool pool{1};
  fl::DataCatalog catalog{""};
  std::vector<std::byte> bytes{};

  Known() {
    fl::ServerData made(std::vector<std::uint32_t>{0, 2});
    made.add({cell}, catalog, pool);
    bytes = made.bytes();
    bytes.resize(bytes.size() - sizeof(std::uint64_t));
  }
};

std::string sealed(std::vector<std::byte> bytes) {
  const std::uint64_t checksum = fl::hash64_of(bytes);
  std::string all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return all.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
}

void shard_file(std::span<const std::byte> bytes) {
  static const fl::fuzz::ScratchFolder folder;
  static Known known;
  if (bytes.empty()) return;
  std::span<const std::byte> rest = bytes.subspan(1);
  std::vector<std::byte> content(rest.begin(), rest.end());
  if ((bytes[0] & std::byte{1}) != std::byte{0}) {
    content = known.bytes;
    for (; rest.size() >= 3; rest = rest.subspan(3))
      content[(std::to_integer<std::size_t>(rest[0]) << 8 | std::to_integer<std::size_t>(rest[1])) % content.size()] = rest[2];
  }
  try {
    const fl::ServerData shard = fl::ServerData::read_shard(folder.write("shard", sealed(std::move(content))));
    require(!shard.clients().empty(), "a shard of no client was accepted");
    const auto problem = shard.problem<double>(known.cell, known.catalog, known.pool);
    if (problem->P() > kMostParameters) return;
    const std::vector<double> zeros(problem->P());
    for (const std::uint32_t client : shard.clients()) {
      require(problem->holds_rows_of(client), "a client of the shard has no rows");
      static_cast<void>(problem->row_hash(client));
      std::vector<double> gradient(problem->P());
      static_cast<void>(problem->model().second_order()->evaluate(known.pool.exec(0), zeros.data(), {.rows = problem->shards()[client]},
                                                                  gradient.data()));
    }
  } catch (const fl::DataError&) {
  } catch (const fl::ConfigError&) {
  } catch (const fl::ArchiveError&) {
  }
}

const fl::fuzz::Register kShardFile("shard_file", shard_file);

}  // namespace
