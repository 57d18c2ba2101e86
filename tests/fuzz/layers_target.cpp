// Any lines are read as the layers of a network on one of a few inputs, with all shapes, or rejected with ConfigError; no parameter is
// allocated. The tensors of a network must follow each other without gaps and cover its parameters.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "clients/nn/network.hpp"
#include "fl_core/config/error.hpp"
#include "tests/fuzz/target.hpp"

namespace {

std::vector<std::string> lines_in(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

template <class T>
void make_network(const std::vector<std::string>& layers, const fl::nn::Shape& input) {
  const fl::nn::Network<T> network(layers, input, {{"classes", 10}, {"features", 784}, {"vocabulary", 80}});
  std::size_t size = 0;
  for (const fl::Layer& tensor : network.tensors()) {
    fl::fuzz::require(tensor.begin == size, "a gap between tensors");
    size += tensor.size();
  }
  fl::fuzz::require(size == network.size(), "tensors do not make up the parameters");
  fl::fuzz::require(network.size() <= UINT32_MAX && network.output().size() <= UINT32_MAX, "a network beyond 32 bits");
  (void)network.room_size(2);
  (void)network.as_form();
}

// The first byte chooses the input.
void layers(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const std::vector<fl::nn::Shape> inputs = {{{784}}, {{3, 32, 32}}, {{20}}, {{20, 8}}};
  const auto& input = inputs[static_cast<std::size_t>(bytes[0]) % inputs.size()];
  const std::vector<std::string> texts = lines_in(fl::fuzz::as_text(bytes.subspan(1)));
  fl::Problems problems;
  fl::nn::check_layers("layers", texts, problems);
  try {
    make_network<float>(texts, input);
    make_network<double>(texts, input);
  } catch (const fl::ConfigError& error) {
    fl::fuzz::require(!error.problems().empty(), "refused without a reason");
  }
}

const fl::fuzz::Register kLayers("layers", layers);

}  // namespace
