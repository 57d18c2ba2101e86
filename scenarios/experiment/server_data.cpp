#include "scenarios/experiment/server_data.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include "fl_core/config/key_error.hpp"
#include "fl_core/state/archive.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/data/dataset_archive.hpp"
#include "scenarios/experiment/run_method.hpp"
#include "scenarios/file/key_places.hpp"

namespace fl {

namespace {

constexpr std::uint32_t kVersion = 3;

template <class X>
void persist_optional(Archive& archive, std::optional<X>& value) {
  bool is_there = value.has_value();
  archive.value(is_there);
  if (is_there && !value) value.emplace();
  if (is_there) archive.value(*value);
}

void persist_facts(Archive& archive, TrainingFacts& facts) {
  archive.section("facts");
  TrainingFacts::Split& split = facts.split;
  archive.value(split.hash);
  archive.value(split.data_hash);
  archive.text(split.note);
  archive.list(split.rows);
  archive.list(split.row_hashes);
  archive.list(split.own_labels);
  archive.value(split.own_rows_are_test_rows);
  archive.value(split.skew.mean_emd);
  archive.value(split.skew.mean_entropy);
  archive.value(split.skew.min_rows);
  archive.value(split.skew.max_rows);
  archive.list(facts.held.clients);
  archive.list(facts.held.own_test_rows);
  persist_optional(archive, facts.curvature);
  persist_optional(archive, facts.least_convexity);
  archive.list(facts.client_smoothness);
  archive.list(facts.gradient_variance);
  archive.value(facts.loss_is_convex);
  std::vector<std::pair<std::string, Minimum>> minima(facts.minima.begin(), facts.minima.end());
  archive.list_of(minima, [&](std::pair<std::string, Minimum>& one) {
    archive.text(one.first);
    archive.list(one.second.x);
    archive.value(one.second.value);
    archive.value(one.second.error);
    archive.value(one.second.is_known);
  });
  facts.minima = {minima.begin(), minima.end()};
  const std::size_t n = split.rows.size();
  const auto fits = [n](const auto& list) { return list.size() == n || list.empty(); };
  if (n == 0 || split.own_labels.size() != n || split.row_hashes.size() != n || !fits(facts.client_smoothness) ||
      !fits(facts.gradient_variance) || std::ranges::find(split.rows, 0u) != split.rows.end())
    throw ArchiveError("in 'facts': they are not of as many clients as the split");
  const HeldRows& held = facts.held;
  const bool ascends = std::ranges::adjacent_find(held.clients, std::ranges::greater_equal()) == held.clients.end();
  const std::size_t with_test_rows = split.own_rows_are_test_rows ? held.clients.size() : 0;
  if (!ascends || (!held.clients.empty() && held.clients.back() >= n) || held.own_test_rows.size() != with_test_rows)
    throw ArchiveError("in 'facts': the clients whose rows it holds are not clients of the split");
}

// Throws ArchiveError unless a shard has the rows that its facts count.
template <class T>
void require_rows(const LoadedData<T>& data, const TrainingFacts& facts) {
  if (facts.held.clients.empty()) return;
  const auto require = [](bool holds) {
    if (!holds) throw ArchiveError("in 'data': it does not hold as many rows as its clients have");
  };
  std::uint64_t left = data.train.num_rows, test_left = data.test ? data.test->num_rows : 0;
  const auto take = [&require](std::uint64_t rows, std::uint64_t& from) {  // sums of forged numbers could wrap around
    require(rows <= from);
    from -= rows;
  };
  for (const std::uint32_t client : facts.held.clients) take(facts.split.rows[client], left);
  for (const std::uint64_t own : facts.held.own_test_rows) take(own, test_left);
  require(left == 0 && test_left == 0);
}

template <class T>
void persist_data(Archive& archive, LoadedData<T>& data) {
  bool is_double = std::is_same_v<T, double>;
  archive.value(is_double);
  if (is_double != std::is_same_v<T, double>) throw ArchiveError("in 'data': it has the other precision");
  persist(archive, data.train);
  bool has_test = data.test.has_value();
  archive.value(has_test);
  if (has_test && !data.test) data.test.emplace();
  if (has_test) persist(archive, *data.test);
  archive.text(data.train_where);
  archive.text(data.test_where);
  archive.value(data.num_dropped_roles);
  archive.value(data.num_dropped_rows);
  archive.value(data.num_dropped_test_rows);
}

// Throws ConfigError if a server cannot play this problem without training rows.
template <class T>
void require_playable(const FederatedProblem<T>& problem) {
  if (problem.train().vocabulary.num_users > 0)
    throw key_error("data",
                    "the losses of data of ratings draw items that a user has not met, which all training rows tell: let the server "
                    "and its peers read the data set");
}

template <class T>
bool needs_optimum(const Scenario& scenario, const FederatedProblem<T>& problem) {
  return scenario.start.kind == StartOptions::Kind::optimum ||
         make_method<T>(scenario, problem.layers(), problem.shards().size(), Device::cpu).local->traits().needs_optimum;
}

}  // namespace

// Returns the rows that the file holds, and says in `facts` whose they are.
template <class T>
LoadedData<T> ServerData::data_of(const FederatedProblem<T>& problem, TrainingFacts& facts) const {
  LoadedData<T> data;
  if (!is_shard()) {
    data.train = form_of(problem.train());
    if (problem.test() != nullptr) data.test = select_rows(*problem.test(), problem.test_rows());
    return data;
  }
  const std::size_t n = problem.shards().size();
  if (clients_.back() >= n)
    throw key_error("--clients", "the run has clients 0-" + std::to_string(n - 1) + ", not " + std::to_string(clients_.back()));
  const ClientRows<T>& own = problem.client_rows();
  Shard rows, test_rows;
  facts.held.clients = clients_;
  for (const std::uint32_t client : clients_) {
    rows.insert(rows.end(), problem.shards()[client].begin(), problem.shards()[client].end());
    if (!own.are_test_rows) continue;
    const auto place = std::ranges::lower_bound(own.clients, client);
    const bool has_some = place != own.clients.end() && *place == client;
    const Shard mine = has_some ? own.shards[static_cast<std::size_t>(place - own.clients.begin())] : Shard();
    test_rows.insert(test_rows.end(), mine.begin(), mine.end());
    facts.held.own_test_rows.push_back(mine.size());
  }
  data.train = select_rows(problem.train(), rows);
  if (own.are_test_rows) data.test = select_rows(*own.data, test_rows);
  return data;
}

template <class T>
void ServerData::add_problem(const Cell& cell, ProblemCache& cache, ThreadPool& pool) {
  FederatedProblem<T> problem(cell.scenario, cache, pool, cell.folder);
  require_playable(problem);
  const std::string key = problem_text(cell.scenario);
  TrainingFacts facts = problem.facts_for(cell.scenario, needs_optimum(cell.scenario, problem));
  const auto known = std::ranges::find(problems_, key, &Entry::key);
  if (known != problems_.end()) {  // another method on the same problem
    known->facts.minima.merge(facts.minima);
    if (!known->facts.least_convexity) known->facts.least_convexity = facts.least_convexity;
    return;
  }
  LoadedData<T> data = data_of(problem, facts);
  data.train_where = problem.where();
  data.num_dropped_roles = problem.num_dropped_roles();
  data.num_dropped_rows = problem.num_dropped_rows();
  data.num_dropped_test_rows = problem.num_dropped_test_rows();
  Archive archive;
  persist_data(archive, data);
  auto place = std::ranges::find(data_, archive.bytes());
  if (place == data_.end()) place = data_.insert(place, archive.bytes());
  problems_.push_back({key, std::move(facts), static_cast<std::size_t>(place - data_.begin())});
  static_cast<void>(this->problem<T>(cell, cache.catalog(), pool));  // refuses a model that is another one without its rows
}

void ServerData::add(const std::vector<Cell>& cells, const DataCatalog& catalog, ThreadPool& pool) {
  ProblemCache cache(catalog);
  for (const Cell& cell : cells)
    placing_errors(cell, [&] {
      if (cell.scenario.precision == Precision::float64)
        add_problem<double>(cell, cache, pool);
      else
        add_problem<float>(cell, cache, pool);
    });
}

template <class T>
std::unique_ptr<FederatedProblem<T>> ServerData::problem(const Cell& cell, const DataCatalog& catalog, ThreadPool& pool) const {
  const auto found = std::ranges::find(problems_, problem_text(cell.scenario), &Entry::key);
  if (found == problems_.end() && is_shard())
    throw ConfigError(
        "the shard has no problem with the data, the partition, the model and the seeds of this run; `fedbits data shard FILE` writes "
        "those of all runs of a scenario, with the same --set");
  if (found == problems_.end())
    throw ConfigError(
        "the file of server data has no problem with the data, the partition, the model and the seeds of this run; `fedbits plan "
        "FILE --server-data` writes those of all runs of a scenario, with the same --set");
  auto data = std::make_shared<LoadedData<T>>();
  Archive archive(data_[found->data]);
  persist_data(archive, *data);
  archive.finish();
  require_rows(*data, found->facts);
  return std::make_unique<FederatedProblem<T>>(cell.scenario, std::move(data), std::make_shared<TrainingFacts>(found->facts), catalog, pool,
                                               cell.folder);
}

void ServerData::persist(Archive& archive) {
  archive.section(is_shard() ? "fedbits shard" : "fedbits server data");
  std::uint32_t version = kVersion;
  archive.value(version);
  if (version != kVersion)
    throw ArchiveError("it has version " + std::to_string(version) + ", this program reads " + std::to_string(kVersion));
  archive.list(clients_);
  archive.list_of(data_, [&](std::vector<std::byte>& one) { archive.list(one); });
  archive.list_of(problems_, [&](Entry& one) {
    archive.text(one.key);
    persist_facts(archive, one.facts);
    archive.value(one.data);
    if (one.data >= data_.size()) throw ArchiveError("in 'facts': they are of data that it does not hold");
    if (one.facts.held.clients != clients_) throw ArchiveError("in 'facts': they are of other clients' rows");
  });
}

std::vector<std::byte> ServerData::bytes() const {
  ServerData copy = *this;  // an archive reads and writes by one function
  Archive archive;
  copy.persist(archive);
  std::vector<std::byte> bytes = archive.bytes();
  const std::uint64_t checksum = hash64_of(bytes);
  const auto raw = std::as_bytes(std::span(&checksum, 1));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
  return bytes;
}

// Reads a file into `data`. If `data` names clients, the file has to be a shard, else the file of a server.
void ServerData::fill(ServerData& data, const std::filesystem::path& file) {
  const bool is_shard = data.is_shard();
  const std::string option = is_shard ? "--shard" : "--server-data";
  std::ifstream in(file, std::ios::binary);
  if (!in) throw DataError(option + ": cannot read " + file.string());
  const std::vector<char> text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const std::span<const std::byte> all = std::as_bytes(std::span(text));
  constexpr std::size_t kFooter = sizeof(std::uint64_t);
  const auto fail = [&](const std::string& why) {
    throw DataError(option + ": " + file.string() + " is no " + (is_shard ? "shard" : "file of server data") +
                    " that this program can read: " + why + "; write it again with `fedbits " +
                    (is_shard ? "data shard FILE`" : "plan FILE --server-data`"));
  };
  if (all.size() < kFooter) fail("it is too short");
  std::uint64_t checksum = 0;
  std::memcpy(&checksum, all.data() + all.size() - kFooter, kFooter);
  const std::span<const std::byte> content = all.first(all.size() - kFooter);
  if (hash64_of(content) != checksum) fail("its checksum is another one");
  try {
    Archive archive(content);
    data.persist(archive);
    archive.finish();
    if (data.is_shard() != is_shard) throw ArchiveError("in 'clients': it holds the rows of none");
  } catch (const ArchiveError& error) {
    fail(error.what());
  }
}

ServerData ServerData::read(const std::filesystem::path& file) {
  ServerData data;
  fill(data, file);
  return data;
}

ServerData ServerData::read_shard(const std::filesystem::path& file) {
  ServerData data(std::vector<std::uint32_t>{0});  // the file replaces the clients
  fill(data, file);
  return data;
}

template std::unique_ptr<FederatedProblem<float>> ServerData::problem(const Cell&, const DataCatalog&, ThreadPool&) const;
template std::unique_ptr<FederatedProblem<double>> ServerData::problem(const Cell&, const DataCatalog&, ThreadPool&) const;

}  // namespace fl
