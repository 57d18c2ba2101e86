// A split that is read from a file, as `fedbits plan --split-file` writes it: another program's, or one that shall not change.
#include "fl_core/config/key_error.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/partitioners/draws.hpp"
#include "scenarios/partitioners/split_file.hpp"

namespace fl {
namespace {

struct FromFileOptions {
  std::string path;
};
void describe(Schema& schema, FromFileOptions& options) {
  schema
      .field("path", options.path,
             "CSV with a line row,client for each training row (`fedbits plan --split-file` writes one); looked for like data.path")
      .required();
}

class FromFile final : public Partitioner {
 public:
  explicit FromFile(FromFileOptions options) : options_(std::move(options)) {}

  void open(const FindFile& find) override { found_ = find(options_.path); }

  bool draws() const override { return false; }
  std::vector<Shard> split(const PartitionRequest& request) const override {
    const std::string path = found_.empty() ? options_.path : found_;
    const SplitFile file = read_split(path);
    if (file.client_of.size() != request.num_rows)
      throw key_error("partition.path", "'" + path + "' splits " + std::to_string(file.client_of.size()) + " rows, the training set has " +
                                            std::to_string(request.num_rows));
    if (file.data_hash && request.data_hash != 0 && *file.data_hash != request.data_hash)
      throw key_error("partition.path", "'" + path + "' splits data with the hash " + to_hex(*file.data_hash) + ", the training set has " +
                                            to_hex(request.data_hash) + "; drop its line data_hash if the rows are the same nevertheless");
    if (request.num_clients != 0 && request.num_clients != file.num_clients)
      throw key_error("partition.path", "'" + path + "' has " + std::to_string(file.num_clients) + " clients, partition.clients is " +
                                            std::to_string(request.num_clients) + "; set clients = " + std::to_string(file.num_clients) +
                                            ", or 0");
    return shards_of(file);
  }

 private:
  FromFileOptions options_;
  std::string found_;
};

FL_REGISTER_PARTITIONER(FromFile, FromFileOptions, "file", "the split of a file: which row belongs to which client", "");

}  // namespace
}  // namespace fl
