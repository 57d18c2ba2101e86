// The policy that decides when a round stops waiting and whose messages count.
//
//   arrival_s [M]  seconds from the opening of the round to the arrival of each asked client's message; infinite = not yet
//   closing time   T = decide(arrivals known now): the round closes at T if nothing else arrives before; infinite = it waits
// A policy serves two callers. Over a network arrivals become known one by one: the server asks after each of them, and closes the round
// when T has passed. With a simulated clock all arrivals are known at once, and one call has the same result as the calls above. So a
// decision depends on arrivals up to T alone (`fedbits check` tests it). docs/decisions/0028 has the reasons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "fl_core/config/registry.hpp"

namespace fl {

class FL_API DeliveryPolicy {
 public:
  virtual ~DeliveryPolicy() = default;
  // Returns whether rounds wait for every client, which the server does by itself. Only such a policy needs no times of arrival.
  [[nodiscard]] virtual bool waits_for_all() const { return false; }
  // Returns the number of clients that are asked in a round, as a multiple of those whose messages are awaited, at least 1.
  [[nodiscard]] virtual double over_selection() const { return 1; }
  // Returns T, and writes 1 to counts [M] for each message that counts if the round closes at T, or now where T is infinite. M >= 1.
  // `awaited`: the number of messages that the round is made for, at most M. T is finite if all messages have arrived, and a message that
  // arrives after T does not count.
  [[nodiscard]] virtual double decide(std::span<const double> arrival_s, std::size_t awaited, std::span<std::uint8_t> counts) const = 0;
};

// Registers a policy. Policies have no device and no precision.
//   FL_REGISTER_DELIVERY(Deadline, DeadlineOptions, "deadline", "summary", "source");
#define FL_REGISTER_DELIVERY(Class, OptionsStruct, name, summary, source)                                                  \
  static const bool FL_JOIN(delivery_, __COUNTER__) = [] {                                                                 \
    auto& registry = ::fl::Registry::instance();                                                                           \
    registry.describe({"delivery", name, summary, source}, ::fl::Options::of<OptionsStruct>());                            \
    registry.add("delivery", name, ::fl::Device::cpu, ::fl::Precision::float64,                                            \
                 ::fl::Factory<::fl::DeliveryPolicy>([](const ::fl::Options& o) -> std::unique_ptr<::fl::DeliveryPolicy> { \
                   return std::make_unique<Class>(o.as<OptionsStruct>());                                                  \
                 }));                                                                                                      \
    return true;                                                                                                           \
  }()

}  // namespace fl
