// Links with public figures. Latencies are one way: half of the round trips that the sources state.
//
//   data_center  100 Gbit/s both ways, 10 us. Ethernet of IEEE 802.3ba-2010; a few switches of 1 to 3 us each (order of magnitude)
//   lan          1 Gbit/s both ways, 0.1 ms. Ethernet of IEEE 802.3ab-1999; latency: order of magnitude
//   wifi         193.7 Mbit/s down, 22.6 Mbit/s up, 7 ms. Fixed broadband of the USA behind a router: medians of Ookla's Speedtest Global
//                Index, end of 2022, 14 ms round trip
//   5g           166 Mbit/s down, 21.1 Mbit/s up. Worldwide medians of Ookla's Speedtest Intelligence, third quarter of 2021
//                15 ms: mobile connections of the USA, 31 ms round trip, end of 2022
//   4g           12 Mbit/s both ways, 35 ms. Profile "LTE" of WebPageTest, 70 ms round trip
//   3g           1.6 Mbit/s down, 768 kbit/s up, 150 ms. Profile "3G" of WebPageTest, 300 ms round trip
// WebPageTest: www/settings/connectivity.ini.sample of github.com/WPO-Foundation/webpagetest.
#pragma once

#include <string>
#include <vector>

#include "timing/network.hpp"

namespace fl {

struct LinkPreset {
  std::string name;
  LinkRates link;
};

[[nodiscard]] FL_API const std::vector<LinkPreset>& link_presets();
// Returns the preset of this name, or null.
[[nodiscard]] FL_API const LinkPreset* find_link_preset(const std::string& name);
[[nodiscard]] FL_API std::vector<std::string> link_preset_names();

}  // namespace fl
