#include "clients/learning/network_form.hpp"

#include "fl_core/config/error.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

LayerForm::LayerForm(Numbers given, LayerMemory taken, std::string called)
    : name(std::move(called)), numbers(std::move(given)), memory(std::move(taken)) {}

double LayerForm::number(const std::string& of) const {
  for (const auto& [known, value] : numbers)
    if (known == of) return value;
  std::string all;
  for (const auto& [known, _] : numbers) all += (all.empty() ? "" : ", ") + known;
  throw Error("the CUDA half of layer \"" + name + "\" asks for the number \"" + of + "\", which as_form() of the layer does not give (" +
              (all.empty() ? "it gives none" : "it gives " + all) + ")");
}

std::size_t LayerForm::size(const std::string& of) const {
  const double value = number(of);
  const auto whole = value >= 0 && value < 0x1p53 ? static_cast<std::size_t>(value) : 0;
  if (static_cast<double>(whole) != value)
    throw Error("the CUDA half of layer \"" + name + "\" takes \"" + of + "\" for a size, and it is " + std::to_string(value));
  return whole;
}

NetworkForm linear_form(std::size_t inputs, std::size_t outputs, bool bias, NetworkForm::Loss loss) {
  NetworkForm form;
  form.layers.push_back({dense_form(1, inputs, outputs, bias), 0, inputs, outputs, 0});
  form.size = outputs * (inputs + (bias ? 1 : 0));
  form.loss = loss;
  return form;
}

std::string layer_without_cuda_half(const NetworkForm& form, Precision precision) {
  for (const NetworkForm::Layer& layer : form.layers) {
    if (!Registry::instance().contains("layer", layer.form.name, Device::cuda, precision)) return layer.form.name;
    for (const NetworkForm& network : layer.form.networks)
      if (std::string name = layer_without_cuda_half(network, precision); !name.empty()) return name;
  }
  return "";
}

void require_cuda_halves(const NetworkForm& form, Precision precision) {
  const std::string name = layer_without_cuda_half(form, precision);
  if (name.empty()) return;
  throw key_error("model.layers", "layer \"" + name + "\" has no CUDA half for " + to_string(precision) +
                                      ", so a GPU cannot train or evaluate this network; use --device cpu, or write the half "
                                      "(docs/how-to-add-a-layer.md)");
}

}  // namespace fl
