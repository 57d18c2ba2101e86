// Clients on peers, behind the interface of a run.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/server/measured_sums.hpp"
#include "net/server/peers.hpp"
#include "net/server/remote_cohort.hpp"
#include "net/server/traffic.hpp"
#include "scenarios/experiment/run_clients.hpp"

namespace fl::net {

template <class T>
class RemoteClients final : public RunClients<T> {
 public:
  // The peers must outlive this object. Throws ConfigError for measures that require simulated clients in this process.
  RemoteClients(Peers& peers, const ClientRequest<T>& request, const Presence& presence, const std::function<bool()>& goes_on,
                Traffic& traffic);
  ~RemoteClients() override;

  [[nodiscard]] CohortRunner<T>& clients() override { return cohort_; }
  [[nodiscard]] ClientProbe<T>& probe() override { return cohort_.probe(); }
  [[nodiscard]] ClientSums<T>& sums() override { return sums_; }
  void prepare(std::span<const double>) override {}  // each peer computes the optimum itself
  void record_into(SampleRecorder*) override {}
  [[nodiscard]] std::string page_file() override { return {}; }
  void commit_checkpoint() override { cohort_.note_checkpoint(); }
  void require_nothing_after(std::uint64_t) const override {}

 private:
  Peers& peers_;
  RemoteCohort<T> cohort_;
  MeasuredSums<T> sums_;
};

extern template class RemoteClients<float>;
extern template class RemoteClients<double>;

// Creates the clients of peers, for MachineOptions::source.
class FL_API RemoteSource final : public ClientSource {
 public:
  RemoteSource(Peers& peers, std::function<bool()> goes_on, const Presence& presence = {});
  [[nodiscard]] Part delivery_of(const Part& written) const override;
  [[nodiscard]] std::unique_ptr<RunClients<float>> clients_of(const ClientRequest<float>& request) override;
  [[nodiscard]] std::unique_ptr<RunClients<double>> clients_of(const ClientRequest<double>& request) override;
  [[nodiscard]] const Traffic& traffic() const { return traffic_; }

 private:
  Peers& peers_;
  std::function<bool()> goes_on_;
  Presence presence_;
  Traffic traffic_;
};

}  // namespace fl::net
