// `fedbits model CHECKPOINT -o FILE`: writes the model of an unfinished run as a file that other programs can read.
#include <CLI/CLI.hpp>
#include <iostream>

#include "apps/fedbits/commands.hpp"
#include "scenarios/experiment/model_file.hpp"

namespace fl {

void add_model_command(CLI::App& app, const Guard& guard) {
  struct Arguments {
    std::string checkpoint, out;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("model", "write the model of a checkpoint as .safetensors or .npy");
  command->add_option("CHECKPOINT", arguments->checkpoint, "file in OUT/checkpoints")->required();
  command->add_option("-o,--output", arguments->out, "file to write; its ending, .safetensors or .npy, chooses the format")->required();
  command->footer(
      "Example: fedbits model fedbits-out/quickstart/checkpoints/3f2a0c11d5e87b46.checkpoint -o model.safetensors\n"
      "The final models of finished runs are written by `fedbits run` and `fedbits sweep` with --save-model.");
  command->callback([arguments, guard] {
    guard([&] {
      const ModelFormat format = model_format_of(arguments->out, "--output");
      const ModelSnapshot model = model_of_checkpoint(arguments->checkpoint);
      write_model(model, format, arguments->out);
      std::cout << "model of run " << model.run << " after round " << model.round << ": " << model.layers.size() << " parameters in "
                << model.layers.layers.size() << " tensors, written to " << arguments->out << '\n';
      return 0;
    });
  });
}

}  // namespace fl
