// Shards of a binary that is built with FL_NET.
#include <numeric>

#include "apps/fedbits/data_shard.hpp"
#include "apps/fedbits/run_support.hpp"
#include "apps/fedbits/store_notes.hpp"
#include "fl_core/config/key_error.hpp"
#include "net/wire/client_ranges.hpp"
#include "scenarios/experiment/server_data.hpp"
#include "scenarios/plugins/plugins.hpp"
#include "study/output/output_file.hpp"

namespace fl {

namespace {

std::vector<std::uint32_t> ids_of(const std::string& text) {
  std::vector<std::uint32_t> ids;
  for (const net::ClientRange& range : net::parse_client_ranges(text))
    for (std::uint64_t client = range.first; client <= range.last; ++client) {
      constexpr std::size_t kMost = 16'777'216;  // in one file
      if (ids.size() == kMost) throw key_error("--clients", "names more than " + std::to_string(kMost) + " clients");
      ids.push_back(static_cast<std::uint32_t>(client));
    }
  return ids;
}

}  // namespace

int write_shard(const ShardArguments& arguments) {
  if (arguments.clients.empty()) throw key_error("--clients", "says whose rows the shard holds, as in 0-4");
  if (arguments.out.empty()) throw key_error("--out", "names the file of the shard");
  const std::vector<Plugin> plugins = load_plugins(arguments.plugins);
  const DataCatalog catalog(arguments.data);
  ThreadPool pool(arguments.threads);
  ServerData shard(ids_of(arguments.clients));
  shard.add(read_cells(arguments.scenario, arguments.settings, &catalog), catalog, pool);
  const std::vector<std::byte> bytes = shard.bytes();
  OutputFile file(arguments.out);
  file.stream().write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  file.rename();
  tell_written("rows of clients " + arguments.clients, {arguments.out});
  return 0;
}

}  // namespace fl
