// Devices with figures of public data sheets: peak rates, times the share of them that programs reach.
//
//   operations/s = efficiency * peak,     bytes/s = bandwidth_efficiency * peak
//
//   server   NVIDIA A100 80 GB SXM: 19.5 TFLOP/s (FP32), 2039 GB/s. NVIDIA, "A100 Tensor Core GPU", data sheet, 2021
//   laptop   Apple M1, 8 GPU cores: 2.6 TFLOP/s, Apple, press release of 10 November 2020; 68.25 GB/s: LPDDR4X-4266 on 128 bits
//   premium  phones with Snapdragon 888, Adreno 660: about 1.7 TFLOP/s, 51.2 GB/s. nanoreview.net
//   middle   phones with Snapdragon 768G, Adreno 620: 0.72 TFLOP/s, 17 GB/s. nanoreview.net
//   entry    phones with Helio P23, Mali-G71 MP2: 0.049 TFLOP/s, 12.8 GB/s. topcpu.net
//
// Shares of phones: 24% of the phones sold in 2023 cost 600 USD or more (Counterpoint Research, "Global premium smartphone market", January
// 2024). The other 76% are halved between middle and entry, which is an assumption. These figures are rough: sales are no installed base,
// and the phones of a study may be others. Kind "tiers" takes your own.
//
// The default efficiencies are assumptions too: matrix products of small models reach about a third of the peak, streams about 80% of the
// bandwidth.
#include "timing/device_tiers.hpp"

namespace fl {
namespace {

enum class DevicePreset { server, laptop, phones };

struct PresetDevicesOptions {
  DevicePreset preset = DevicePreset::phones;
  double efficiency = 0.3, bandwidth_efficiency = 0.8;
  QuantileOptions quantiles;
};
void describe(Schema& schema, PresetDevicesOptions& options) {
  schema.choice("preset", options.preset,
                {{DevicePreset::server, "server"}, {DevicePreset::laptop, "laptop"}, {DevicePreset::phones, "phones"}},
                "a GPU server, a laptop, or three kinds of phones; docs/devices.md has the figures and their sources");
  schema.field("efficiency", options.efficiency, "share of the peak operations per second that clients reach").above(0).at_most(1);
  schema.field("bandwidth_efficiency", options.bandwidth_efficiency, "share of the peak memory bandwidth that clients reach")
      .above(0)
      .at_most(1);
  describe_quantiles(schema, options.quantiles, "of faster kinds");
}
void validate(const PresetDevicesOptions& options, Problems& problems) {
  validate_quantiles(options.quantiles, problems);
  if (options.quantiles.follows != Follows::nothing && options.preset != DevicePreset::phones)
    problems.push_back({"follows", "has no effect, because all clients have the same device; use preset = \"phones\" or drop the key"});
}

constexpr double kGiga = 1e9, kTera = 1e12, kGibi = 0x1p30;

std::vector<DeviceKind> peaks_of(DevicePreset preset) {
  if (preset == DevicePreset::server) return {{"server", 1, {19.5 * kTera, 2039 * kGiga, 80 * kGibi}}};
  if (preset == DevicePreset::laptop) return {{"laptop", 1, {2.6 * kTera, 68.25 * kGiga, 16 * kGibi}}};
  return {{"entry", 0.38, {0.049 * kTera, 12.8 * kGiga, 3 * kGibi}},
          {"middle", 0.38, {0.72 * kTera, 17 * kGiga, 6 * kGibi}},
          {"premium", 0.24, {1.7 * kTera, 51.2 * kGiga, 8 * kGibi}}};
}

std::vector<DeviceKind> preset_kinds(const PresetDevicesOptions& options) {
  std::vector<DeviceKind> kinds = peaks_of(options.preset);
  for (DeviceKind& kind : kinds) {
    kind.rates.operations_per_s *= options.efficiency;
    kind.rates.bytes_per_s *= options.bandwidth_efficiency;
  }
  return kinds;
}

class PresetDevices final : public Devices {
 public:
  explicit PresetDevices(const PresetDevicesOptions& options) : quantiles_(options.quantiles), tiers_(preset_kinds(options)) {}
  void open(const ClientFacts& clients) override { tiers_.open(quantiles_, clients); }
  [[nodiscard]] DeviceRates rates(std::uint32_t client) const override { return tiers_.rates(client); }
  [[nodiscard]] std::vector<std::string> tiers() const override { return tiers_.names(); }
  [[nodiscard]] std::size_t tier(std::uint32_t client) const override { return tiers_.kind(client); }

 private:
  QuantileOptions quantiles_;
  DeviceTiers tiers_;
};

FL_REGISTER_DEVICES(PresetDevices, PresetDevicesOptions, "preset", "servers, laptops or phones with figures of their data sheets",
                    "data sheets of NVIDIA and Apple, nanoreview.net, topcpu.net; shares: Counterpoint Research, 2024");

}  // namespace
}  // namespace fl
