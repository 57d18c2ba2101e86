// The settings that a key needs in order to have an effect, for tests/properties/every_key_test.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fl::test {

// Small and quick; contexts change it by settings in the syntax of --set.
inline const std::string kBase = R"(
name = "keys"
rounds = 6
precision = "float64"
[data]
name = "mushrooms"
rows = 150
test_fraction = 0.2
[partition]
kind = "shuffled"
clients = 4
[model]
kind = "logistic_regression"
l2 = 0.01
[local]
kind = "gradient"
learning_rate = 0.5
[evaluate]
every = 1
)";

// All matching contexts apply, in their order: "*" matches any table, part or key; part "" means a table's own keys.
struct Context {
  std::string table, part, key;
  std::vector<std::string> settings;
  std::vector<std::string> values{};   // tried instead of the values that the field's type suggests
  std::vector<std::string> instead{};  // settings of the changed scenario, if the key excludes another
  bool refusal_counts = false;         // the key's effect is that a run is rejected
};

struct Exempt {
  std::string table, part, key, reason;
};

inline const std::vector<Exempt> kExempt = {
    {"", "", "results_version", "any number but the program's own is refused; results_version_test says how"},
    {"", "", "matrix_products", "rounds on GPUs alone; tests/gpu/training_test.cpp"},
    {"data", "synthetic", "alpha", "cancels in the publication's formula, as the key's description says"},
};

inline const std::vector<std::string> kImages = {"data={path='images'}",
                                                 "model={kind='neural_network', layers=['flatten', 'dense(classes)']}",
                                                 "local={kind='sgd', batch=4, learning_rate=0.1}", "rounds=2"};
inline const std::vector<std::string> kTop = {"compressor.up={kind='top_k', k=5}"};
inline const std::vector<std::string> kMlp = {"model={kind='mlp', hidden=[4]}", "local={kind='sgd', batch=4, learning_rate=0.1}"};
inline const std::vector<std::string> kText = {"data={path='text.txt', format='text', sequence=8, test_fraction=0.1}",
                                               "model={kind='neural_network', layers=['embedding(vocabulary, 3)', 'lstm(4, last=true)', "
                                               "'dense(classes)']}",
                                               "local={kind='sgd', batch=4, learning_rate=0.1}", "rounds=2"};

inline const std::vector<std::string> kLinks = {"network={kind='lognormal', down=1e5, up=1e4, down_sigma=1.0, up_sigma=1.0, jitter=0.5}"};

inline const std::vector<std::string> kSlowMemory = {"devices.flops=1e20", "devices.bandwidth=1e9"};

inline const std::vector<Context> kContexts = {
    {"", "", "name", {}, {"'other'"}},
    {"", "", "precision", {}, {"'float32'"}},
    {"seeds", "", "init", kMlp},
    {"seeds", "", "sampling", {"local.batch=4"}},
    {"seeds", "", "compressor", {"compressor.up={kind='qsgd'}"}},
    {"stop", "", "accuracy", {}, {"0.01"}},
    {"stop", "", "f_gap", {}, {"100.0"}},
    {"stop", "", "grad_norm_sq", {}, {"1e6"}},
    {"stop", "", "bits", {}, {"1.0"}},
    {"stop", "", "seconds", kLinks, {"1e-6"}},
    {"stop", "", "measures", {"evaluate.measures=['model_path']"}, {"['model_path >= 0.0']"}},

    // Data.
    {"data", "", "name", {"data={path='table.csv'}"}, {"-"}, {"data={name='mushrooms'}"}},
    {"data", "", "path", {}, {"-"}, {"data={path='table.csv'}"}},
    {"data", "", "test", {"data={path='table.csv', test='table_test.csv'}"}, {"'none'"}},
    {"data", "", "rows", {}, {"100"}},
    {"data", "", "features", {}, {"200"}},
    {"data",
     "",
     "labels",
     {"data={path='table.csv', labels='target'}", "model={kind='linear_regression'}"},
     {"-"},
     {"data={path='table.csv'}"}},
    {"data", "", "format", {"data={path='words.tokens', sequence=4}", kText[1], kText[2], "rounds=2"}, {"'text'"}},
    {"data", "", "normalise", kImages},
    {"data", "", "mean", kImages, {"[0.3]"}},
    {"data", "", "mean", {"data={path='images', normalise='standard', mean=[0.4], deviation=[0.5]}"}},
    {"data", "", "deviation", kImages, {"[0.7]"}},
    {"data", "", "deviation", {"data={path='images', normalise='standard', mean=[0.4], deviation=[0.5]}"}},
    {"data", "", "sequence", kText, {"12"}},
    {"data", "", "stride", kText, {"3"}},
    {"data", "", "min_text", kText, {"60"}},
    {"data", "", "min_text", {"data={path='roles', sequence=8}"}},
    {"data",
     "",
     "label_positions",
     kText,
     {"-"},
     {"data={path='text.txt', format='text', sequence=8, test_fraction=0.1, label_positions='every'}", kText[1], kText[2], kText[3],
      "model.layers=['embedding(vocabulary, 3)', 'lstm(4)', 'dense(classes)']"}},
    {"data",
     "",
     "leave_one_out",
     {"data={path='ratings.csv', format='ratings', labels='target'}", "partition={kind='natural', clients=0}",
      "model={kind='ncf', embedding=3, hidden=[4]}", "local={kind='sgd', batch=4, learning_rate=0.1}", "rounds=2"}},
    {"data", "", "label_column", {"data={path='table.csv'}"}, {"'kind'"}},
    {"data", "", "categories", {"data={path='table.csv'}"}, {"['size']"}},
    {"data", "", "missing", {"data={path='gaps.csv', missing='mean'}"}, {"'drop'"}},
    {"data", "quadratics", "*", {"partition={kind='natural', clients=0}", "model={kind='quadratic'}", "local.learning_rate=0.3"}},
    {"data", "quadratics", "noise", {"data.rows_per_client=3", "local.batch=1"}},
    {"data", "quadratics", "L", {}, {"2.0"}},
    {"data",
     "synthetic",
     "*",
     {"partition={kind='natural', clients=0}", "model={kind='logistic_regression', multinomial=true}", "data.clients=3", "data.features=4",
      "data.classes=3", "evaluate.optimum=false"}},
    {"data", "synthetic", "reading", {"data.alpha=0.5", "data.beta=0.5"}},
    {"data.augment", "", "*", kImages},

    // Splits.
    {"partition", "*", "*", {"partition.clients=4"}},
    {"partition",
     "by_group",
     "feature",
     {"data={kind='synthetic', clients=9, features=4, classes=3}", "model={kind='logistic_regression', multinomial=true}"},
     {"1"}},
    {"partition", "dirichlet_class", "*", {"partition.beta=2.0"}},
    {"partition", "dirichlet_class", "min_rows", {}, {"20", "25"}},
    {"partition", "dirichlet_class", "max_draws", {"partition.beta=0.3", "partition.min_rows=15"}, {"1"}, {}, true},
    {"partition", "feature_noise", "*", {"data.storage='dense'"}},
    {"partition", "n_classes", "classes", {}, {"1"}},
    {"partition", "power_law", "*", {"partition.classes=1"}},
    {"partition", "power_law", "classes", {"partition.min_rows=2", "partition.sigma=0.5"}, {"2"}},
    {"partition", "quantity_skew", "min_rows", {}, {"20"}},
    {"partition", "rotation", "groups", kImages},
    {"partition", "file", "path", {"partition.clients=0", "partition.path='split_a.csv'"}, {"'split_b.csv'"}},

    // Models.
    {"model", "", "keep", {"model={kind='mlp', hidden=[4]}", "local={kind='sgd', batch=4, learning_rate=0.1}"}, {"['1.dense.*']"}},
    {"model", "", "weights", {"partition={kind='quantity_skew', clients=4, beta=0.5}"}},
    {"model", "char_lstm", "*", kText},
    {"model", "char_lstm", "*", {"model={kind='char_lstm', embedding=2, units=3, layers=1}"}},
    {"model", "lenet5", "*", {"data={path='images28'}", "rounds=1", "start.kind='random'"}},
    {"model", "lenet5", "activation", {}, {"'tanh'"}},
    {"model", "lenet5", "pooling", {}, {"'mean_pool'"}},
    {"model", "linear_regression", "*", {"data={path='table.csv', labels='target'}"}},
    {"model", "logistic_regression", "*", {"model.l2=0.01"}},
    {"model", "mlp", "*", {"model.hidden=[4]", "local={kind='sgd', batch=4, learning_rate=0.1}"}},
    {"model", "mlp", "hidden", {}, {"[5]"}},
    {"model", "mlp", "activation", {}, {"'tanh'"}},
    {"model",
     "ncf",
     "*",
     {"data={path='ratings.csv', format='ratings', labels='target'}", "partition={kind='natural', clients=0}",
      "model={kind='ncf', factors=2, embedding=3, hidden=[4], negatives=2}", "local={kind='sgd', batch=4, learning_rate=0.1}", "rounds=2"}},
    {"model", "ncf", "hidden", {}, {"[5]"}},
    {"model",
     "neural_network",
     "*",
     {"model.layers=['dense(3)', 'relu', 'dense(classes)']", "local={kind='sgd', batch=4, learning_rate=0.1}"}},
    {"model", "neural_network", "layers", {}, {"['dense(classes)']"}},
    {"model",
     "neural_network",
     "loss",
     {"data={path='table.csv', labels='target'}", "model.layers=['dense(1)']", "model.loss='squared_error'"},
     {"-"},
     {"data={path='table.csv'}", "model={kind='neural_network', layers=['dense(classes)']}",
      "local={kind='sgd', batch=4, learning_rate=0.1}"}},
    {"model", "resnet18", "*", {"data={path='images'}", "rounds=1", "model.width=2", "local={kind='sgd', batch=4, learning_rate=0.1}"}},
    {"model", "resnet18", "groups", {}, {"1"}},

    // The start.
    {"start", "", "kind", {}, {"'optimum'"}},
    {"start", "", "path", {"start={kind='file', path='start_a.txt'}"}, {"'start_b.txt'"}},

    // Local updates.
    {"local", "*", "*", {"local.learning_rate=0.5"}},
    {"local", "scaffold", "control", {"local.steps=3"}},
    {"local", "lsvrg", "p", {"local.batch=4", "local.p=0.5"}},
    {"local", "*", "batch", {}, {"4"}},
    {"local", "*", "replacement", {"local.batch=10"}},
    {"local", "*", "sample_file", {"local.batch=1", "local.sample_file='rows_a.csv'"}, {"'rows_b.csv'"}},
    {"local", "*", "learning_rate", {}, {"0.2"}},
    {"local", "*", "warmup_rounds", {}, {"3"}},
    {"local", "*", "decay_rounds", {"local.schedule='step'", "local.decay_rounds=2"}, {"3"}},
    {"local", "*", "decay_factor", {"local.schedule='step'", "local.decay_rounds=2"}},
    {"local", "*", "final_factor", {"local.schedule='cosine'"}},
    {"local", "*", "steps", {}, {"3"}},
    {"local", "*", "epochs", {"local.batch=10"}, {"2"}},
    {"local", "*", "stragglers", {"local.steps=5"}},
    {"local", "*", "least", {"local.steps=5", "local.stragglers=1.0"}, {"4"}},
    {"local", "*", "redraw", {"local.steps=5", "local.stragglers=1.0"}},
    {"local", "sgd", "proximal_mu", {"local.steps=3"}},
    {"local", "sgd", "momentum", {"local.steps=3"}},
    {"local", "mime_lite", "momentum", {"local.steps=3"}},
    {"local", "mvr", "momentum", {"local.batch=4"}},

    // Local optimizers.
    {"local_optimizer", "*", "*", {"local={kind='sgd', batch=10, steps=3, learning_rate=0.1}"}},
    {"local_optimizer", "sgd", "state", {"local_optimizer.momentum=0.5"}},
    {"local_optimizer",
     "adamw",
     "no_decay",
     {kMlp[0], "local={kind='sgd', batch=4, steps=3, learning_rate=0.1}", "local_optimizer.weight_decay=0.3"},
     {"['1.dense.weight']"}},

    // Participation.
    {"participation", "", "absent", {"participation={kind='uniform', clients=2}", "feedback.up.kind='ef14'", kTop[0]}},
    {"participation",
     "",
     "absent_decay",
     {"participation={kind='uniform', clients=2, absent='decay'}", "feedback.up.kind='ef14'", kTop[0]}},
    {"participation", "*", "estimate", {"partition={kind='quantity_skew', clients=4, beta=0.5}"}},
    {"participation", "by_data", "estimate", {"participation.clients=2"}},
    {"participation", "cyclic", "estimate", {"participation.clients=2"}},
    {"participation", "uniform", "estimate", {"participation.clients=2"}},
    {"participation", "poisson", "estimate", {"participation.p=0.6"}},
    {"participation", "cyclic", "order", {"participation.clients=2"}},
    {"participation", "trace", "path", {"participation.path='trace_a.csv'"}, {"'trace_b.csv'"}},

    // Devices, links and availability, and what follows times of arrival. Work takes the longer of two times.
    {"costs", "", "*", {"devices={kind='constant', flops=1e9, bandwidth=1e20}", "postprocessor={kind='norm_clipping', limit=1.0}"}},
    {"costs", "", "model_bytes", kSlowMemory},
    {"costs", "", "local_bytes", kSlowMemory},
    {"costs", "", "compressor_passes", kSlowMemory},
    {"costs", "", "feedback_passes", kSlowMemory},
    {"costs", "", "postprocessor_passes", kSlowMemory},
    {"devices", "*", "*", {"partition={kind='quantity_skew', clients=5, beta=1.0}"}},
    {"devices", "constant", "*", {"devices.flops=1e9", "devices.bandwidth=1e20"}},
    {"devices", "lognormal", "*", {"devices.flops=1e9", "devices.bandwidth=1e20"}},
    {"devices", "*", "bandwidth", kSlowMemory},
    {"devices", "lognormal", "bandwidth_sigma", kSlowMemory},
    {"devices", "*", "memory", {}, {"1.0"}, {}, true},
    {"devices", "", "server_flops", {"devices={kind='constant', flops=1e9, bandwidth=1e9}", "devices.server_bandwidth=1e20"}},
    {"devices", "", "server_bandwidth", {"devices={kind='constant', flops=1e9, bandwidth=1e9}", "devices.server_flops=1e20"}},
    {"devices",
     "tiers",
     "*",
     {"devices.tiers=[{ name='a', share=0.5, flops=1e6, bandwidth=1e6 }, { name='b', share=0.5, flops=1e9, bandwidth=1e9 }]"}},
    {"devices", "tiers", "tiers", {}, {"[{ name='a', share=1.0, flops=1e6, bandwidth=1e6 }]"}},
    {"devices", "preset", "*", {"devices.preset='phones'"}},
    {"devices", "preset", "efficiency", {"costs.model_flops=1e12"}},
    {"devices", "csv", "*", {"devices.path='devices.csv'"}},
    {"devices", "csv", "path", {}, {"'devices_b.csv'"}},
    {"devices", "tiers", "correlation", {"participation={kind='uniform', clients=1}"}},
    {"devices", "*", "follows", {"devices.follows='rows'", "devices.correlation=0.9"}, {"'labels'"}},
    {"devices", "*", "correlation", {"devices.follows='rows'"}, {"1.0", "-1.0"}},
    {"network", "*", "*", {"partition={kind='quantity_skew', clients=5, beta=1.0}"}},
    {"network", "constant", "*", {"network.down=1e5", "network.up=1e4"}},
    {"network", "lognormal", "*", {"network.down=1e5", "network.up=1e4"}},
    {"network", "tiers", "*", {"network.tiers=[{ preset='3g', share=0.5 }, { preset='wifi', share=0.5 }]"}},
    {"network", "tiers", "tiers", {}, {"[{ preset='3g', share=1.0 }]"}},
    {"network", "tiers", "correlation", {"participation={kind='uniform', clients=1}"}},
    {"network", "trace", "*", {"network.path='rates.csv'"}},
    {"network", "trace", "path", {}, {"'rates_b.csv'"}},
    {"network", "trace", "repeat", {"network.repeat=true", "network.period=5.0"}, {"false"}, {}, true},
    {"network", "trace", "period", {"network.repeat=true", "network.period=5.0"}, {"7.0"}},
    {"network", "", "server_down", {"network={kind='constant', down=1e6, up=1e6}"}},
    {"network", "", "server_up", {"network={kind='constant', down=1e6, up=1e6}"}},
    {"network", "*", "follows", {"network.follows='rows'", "network.correlation=0.9"}, {"'labels'"}},
    {"network", "*", "correlation", {"network.follows='rows'"}, {"0.9"}},
    {"availability", "*", "*", {kLinks[0], "partition={kind='quantity_skew', clients=5, beta=1.0}"}},
    {"availability", "markov", "*", {"availability.mean_on_s=3.0", "availability.mean_off_s=3.0"}},
    {"availability", "day_and_night", "*", {"availability.period=10.0"}},
    {"availability", "markov", "follows", {"availability.share_sigma=2.0"}},
    {"availability", "markov", "correlation", {"availability.share_sigma=2.0"}},
    {"availability", "trace", "*", {"availability.path='hours.csv'"}},
    {"availability", "trace", "path", {}, {"'hours_b.csv'"}},
    {"availability", "trace", "repeat", {"availability.repeat=true", "availability.period=5.0"}, {"false"}, {}, true},
    {"availability", "trace", "period", {"availability.repeat=true", "availability.period=5.0"}},
    {"availability", "*", "follows", {"availability.follows='rows'", "availability.correlation=0.9"}, {"'labels'"}},
    {"availability", "*", "correlation", {"availability.follows='rows'"}, {"0.9"}},
    {"delivery", "*", "*", {kLinks[0], "partition.clients=5"}},
    {"delivery", "first", "*", {"participation={kind='uniform', clients=2}"}},
    {"delivery", "*", "deadline_s", {"delivery.deadline_s=0.5"}, {"0.7"}},
    {"asynchronous", "*", "*", {kLinks[0], "partition.clients=5"}},
    {"asynchronous", "fedbuff", "*", {"asynchronous.buffer=2"}},
    {"asynchronous", "*", "exponent", {"asynchronous.staleness='polynomial'"}},
    {"asynchronous", "*", "slope", {"asynchronous.staleness='hinge'", "asynchronous.tolerance=0.0"}},
    {"asynchronous", "*", "tolerance", {"asynchronous.staleness='hinge'"}, {"0.0"}},

    // Compressors.
    {"compressor.up", "", "scope", {kMlp[0], kMlp[1], "compressor.up={kind='top_k', ratio=0.1}"}, {"'tensor'"}},
    {"compressor.up", "", "bucket", {"compressor.up={kind='top_k', ratio=0.1, scope='bucket', bucket=16}"}, {"32"}},
    {"compressor.up", "", "exclude", {kMlp[0], kMlp[1], kTop[0]}, {"['1.dense.bias']"}},
    {"compressor.down", "", "scope", {kMlp[0], kMlp[1], "compressor.down={kind='top_k', ratio=0.1}"}, {"'tensor'"}},
    {"compressor.down", "", "bucket", {"compressor.down={kind='top_k', ratio=0.1, scope='bucket', bucket=16}"}, {"32"}},
    {"compressor.up", "absolute_low_rank", "*", {"model={kind='mlp', hidden=[4]}", "compressor.up.scope='tensor'"}},
    {"compressor.up", "gradzip", "*", {"model={kind='mlp', hidden=[4]}", "compressor.up.scope='tensor'", "compressor.up.rank=1"}},
    {"compressor.up", "powersgd", "*", {"model={kind='mlp', hidden=[4]}", "compressor.up.scope='tensor'", "compressor.up.rank=1"}},
    {"compressor.up", "rank_r_svd", "*", {"model={kind='mlp', hidden=[4]}", "compressor.up.scope='tensor'", "compressor.up.rank=1"}},
    {"compressor.up",
     "accordion",
     "*",
     {"compressor.up.critical={kind='top_k', k=20}", "compressor.up.otherwise={kind='top_k', k=2}", "compressor.up.window=1"}},
    {"compressor.up", "accordion", "critical", {}, {"{kind='top_k', k=30}"}},
    {"compressor.up", "accordion", "otherwise", {}, {"{kind='top_k', k=3}"}},
    {"compressor.up", "absolute_low_rank", "rule", {"compressor.up.unit='step'"}},
    {"compressor.up", "absolute_rounding", "rule", {"compressor.up.unit='step'"}},
    {"compressor.up", "absolute_rounding", "epsilon", {"compressor.up.step='epsilon/10'", "compressor.up.epsilon=0.1"}},
    {"compressor.up", "sz", "rule", {"compressor.up.unit='step'"}},
    {"compressor.up", "sz", "epsilon", {"compressor.up.error_bound='epsilon/10'", "compressor.up.epsilon=0.1"}},
    {"compressor.up", "zfp", "rule", {"compressor.up.unit='step'"}},
    {"compressor.up", "zfp", "epsilon", {"compressor.up.error_bound='epsilon/10'", "compressor.up.epsilon=0.1"}},
    {"compressor.up", "zfp", "block", {"model={kind='mlp', hidden=[4]}", "compressor.up.scope='tensor'"}},
    {"compressor.up", "dqsgd", "rule", {"compressor.up.unit='step'"}},
    {"compressor.up", "dqsgd", "max_levels", {"compressor.up.levels_per_unit=1000.0"}, {"2"}},
    {"compressor.up", "hard_threshold", "rule", {"compressor.up.unit='step'"}},
    {"compressor.up", "hard_threshold", "k", {"compressor.up.threshold='1/(100*k)'", "compressor.up.k=1"}, {"5"}},
    {"compressor.up", "hard_threshold", "epsilon", {"compressor.up.threshold='epsilon/10'", "compressor.up.epsilon=0.1"}},
    {"compressor.up", "wangni", "corrections", {"compressor.up.ratio=0.3"}, {"0"}},
    {"compressor.up",
     "sidco",
     "*",
     {"data={kind='synthetic', clients=4}", "partition={kind='natural', clients=0}",
      "model={kind='logistic_regression', multinomial=true, l2=0.1}", "local.learning_rate=0.01", "evaluate.optimum=false",
      "compressor.up.stages=2"}},
    {"compressor.up", "sidco", "update_every", {"compressor.up={kind='sidco', ratio=0.2}", "rounds=12"}, {"1"}},
    {"compressor.up", "variance_based", "zeta", {"local.batch=4", "rounds=20"}},
    {"compressor.up", "adaqs", "double_every", {}, {"2"}},
    {"compressor.up", "adaqs", "max_levels", {"compressor.up.double_every=1"}, {"2"}},
    {"compressor.up", "aji_dropping", "*", {"compressor.up.ratio=0.1"}},
    {"compressor.up", "aji_dropping", "k", {"compressor.up={kind='aji_dropping', sample=0.5, k=2}"}, {"20"}},
    {"compressor.up", "aji_dropping", "ratio", {"compressor.up.sample=0.5"}},
    {"compressor.up", "atomo", "atoms", {"model={kind='mlp', hidden=[4]}", "compressor.up.scope='tensor'"}},
    {"compressor.up",
     "atomo",
     "rank",
     {"model={kind='mlp', hidden=[4]}", "compressor.up.scope='tensor'", "compressor.up.atoms='singular'"}},
    {"compressor.up", "dgc_sampled", "*", {"compressor.up.ratio=0.1"}},
    {"compressor.up",
     "dgc_sampled",
     "warmup",
     {"compressor.up={kind='dgc_sampled', ratio=0.1, warmup=[0.5, 0.3], warmup_rounds=2}"},
     {"[0.6, 0.3]"}},
    {"compressor.up",
     "dgc_sampled",
     "warmup_rounds",
     {"compressor.up={kind='dgc_sampled', ratio=0.1, warmup=[0.5, 0.3], warmup_rounds=2}"},
     {"4"}},
    {"compressor.up", "induced", "biased", {}, {"{kind='top_k', k=20}"}},
    {"compressor.up", "induced", "unbiased", {}, {"{kind='qsgd'}"}},
    {"compressor.up",
     "lgreco",
     "*",
     {"model={kind='mlp', hidden=[4]}", "compressor.up.scope='tensor'", "compressor.up.reference={kind='top_k', ratio=0.2}",
      "compressor.up.candidates=[{kind='top_k', ratio=0.05}, {kind='top_k', ratio=0.5}]", "compressor.up.adjust_every=2"}},
    {"compressor.up", "lgreco", "reference", {}, {"{kind='top_k', ratio=0.4}"}},
    {"compressor.up", "lgreco", "candidates", {}, {"[{kind='top_k', ratio=0.1}]"}},
    {"compressor.up", "lgreco", "steps", {}, {"1", "2", "3"}},
    {"compressor.up", "schedule", "stages", {}, {"[{kind='top_k', k=20}]"}},
    {"compressor.up",
     "schedule",
     "from",
     {"compressor.up.stages=[{kind='top_k', k=20}, {kind='top_k', k=4}]", "compressor.up.from=[1, 3]"},
     {"[1, 4]"}},

    // Feedbacks, whose needs determine the rest of the scenario.
    {"feedback.up", "cser", "reset_every", {}, {"2"}},
    {"feedback.up", "lag", "memory", {"feedback.up.xi=0.3"}, {"1"}},

    {"compressor.down", "", "send", {"compressor.up={kind='top_k', k=2}"}, {"'model'"}},

    // The server and what is measured.
    {"postprocessor", "norm_clipping", "*", {"postprocessor.limit=0.01"}},
    {"server", "", "average", {"partition={kind='quantity_skew', clients=4, beta=0.5}"}},
    {"server",
     "",
     "statistics",
     {"data={path='images'}", "model={kind='neural_network', layers=['conv2d(2)', 'batch_norm', 'dense(classes)']}",
      "local={kind='sgd', batch=4, learning_rate=0.1}", "rounds=2"},
     {"'local'"}},
    {"evaluate", "", "published_metrics", {"feedback.up.kind='ef14'", kTop[0]}},
    {"evaluate", "", "optimum", {}, {"false"}},
    {"evaluate", "", "measures", {}, {"['model_path']"}},
    {"evaluate", "", "gradient_every", {"evaluate.gradient='every'"}, {"2"}},
    {"evaluate",
     "",
     "ranking_every",
     {"data={path='ratings.csv', format='ratings', labels='target', leave_one_out=true}", "partition={kind='natural', clients=0}",
      "model={kind='ncf', embedding=3, hidden=[4]}", "local={kind='sgd', batch=4, learning_rate=0.1}", "rounds=2"}},

    // Layers: "@" is where an option of the layer goes.
    {"layer", "*", "*", {"local={kind='sgd', batch=4, learning_rate=0.1}", "rounds=2", "data={path='images'}"}},
    {"layer", "batch_norm", "*", {"model={kind='neural_network', layers=['conv2d(2)', 'batch_norm(@)', 'dense(classes)']}"}},
    {"layer",
     "concat",
     "first",
     {"model={kind='neural_network', layers=['concat(first=[conv2d(2), flatten], second=[conv2d(1), flatten])', 'dense(classes)']}"},
     {"-"},
     {"rounds=2", "local={kind='sgd', batch=4, learning_rate=0.1}", "data={path='images'}",
      "model={kind='neural_network', layers=['concat(first=[conv2d(3), flatten], second=[conv2d(1), flatten])', 'dense(classes)']}"}},
    {"layer",
     "concat",
     "second",
     {"model={kind='neural_network', layers=['concat(first=[conv2d(2), flatten], second=[conv2d(1), flatten])', 'dense(classes)']}"},
     {"-"},
     {"rounds=2", "local={kind='sgd', batch=4, learning_rate=0.1}", "data={path='images'}",
      "model={kind='neural_network', layers=['concat(first=[conv2d(2), flatten], second=[conv2d(3), flatten])', 'dense(classes)']}"}},
    {"layer", "conv2d", "*", {"model={kind='neural_network', layers=['conv2d(channels=2@)', 'dense(classes)']}"}},
    {"layer",
     "conv2d",
     "channels",
     {"model={kind='neural_network', layers=['conv2d(2)', 'dense(classes)']}"},
     {"-"},
     {"rounds=2", "local={kind='sgd', batch=4, learning_rate=0.1}", "data={path='images'}",
      "model={kind='neural_network', layers=['conv2d(3)', 'dense(classes)']}"}},
    {"layer", "dense", "*", {"model={kind='neural_network', layers=['dense(units=4@)', 'dense(classes)']}"}},
    {"layer", "conv2d", "init", {}, {"zero"}},
    {"layer", "dense", "init", {}, {"zero"}},
    {"layer",
     "dense",
     "units",
     {"model={kind='neural_network', layers=['dense(4)', 'dense(classes)']}"},
     {"-"},
     {"rounds=2", "local={kind='sgd', batch=4, learning_rate=0.1}", "data={path='images'}",
      "model={kind='neural_network', layers=['dense(5)', 'dense(classes)']}"}},
    {"layer", "dropout", "*", {"model={kind='neural_network', layers=['dense(6)', 'dropout(@)', 'dense(classes)']}"}},
    {"layer",
     "embedding",
     "*",
     {"data={path='text.txt', format='text', sequence=8, test_fraction=0.1}",
      "model={kind='neural_network', layers=['embedding(entries=vocabulary, units=3@)', 'flatten', 'dense(classes)']}"}},
    {"layer",
     "embedding",
     "entries",
     {},
     {"-"},
     {"rounds=2", "local={kind='sgd', batch=4, learning_rate=0.1}", "data={path='text.txt', format='text', sequence=8, test_fraction=0.1}",
      "model={kind='neural_network', layers=['embedding(99, 3)', 'flatten', 'dense(classes)']}"}},
    {"layer",
     "embedding",
     "units",
     {},
     {"-"},
     {"rounds=2", "local={kind='sgd', batch=4, learning_rate=0.1}", "data={path='text.txt', format='text', sequence=8, test_fraction=0.1}",
      "model={kind='neural_network', layers=['embedding(vocabulary, 4)', 'flatten', 'dense(classes)']}"}},
    {"layer", "group_norm", "*", {"model={kind='neural_network', layers=['conv2d(4)', 'group_norm(@)', 'dense(classes)']}"}},
    {"layer",
     "lstm",
     "*",
     {"data={path='text.txt', format='text', sequence=8, test_fraction=0.1}",
      "model={kind='neural_network', layers=['embedding(vocabulary, 3)', 'lstm(units=4@)', 'flatten', 'dense(classes)']}"}},
    {"layer",
     "lstm",
     "units",
     {},
     {"-"},
     {"rounds=2", "local={kind='sgd', batch=4, learning_rate=0.1}", "data={path='text.txt', format='text', sequence=8, test_fraction=0.1}",
      "model={kind='neural_network', layers=['embedding(vocabulary, 3)', 'lstm(5)', 'flatten', 'dense(classes)']}"}},
    {"layer", "lstm", "bias", {}, {"one"}},
    {"layer", "max_pool", "*", {"model={kind='neural_network', layers=['conv2d(2)', 'max_pool(@)', 'dense(classes)']}"}},
    {"layer", "mean_pool", "*", {"model={kind='neural_network', layers=['conv2d(2)', 'mean_pool(@)', 'dense(classes)']}"}},
    {"layer",
     "residual",
     "body",
     {"model={kind='neural_network', layers=['residual(body=[conv2d(1, padding=1)])', 'dense(classes)']}"},
     {"-"},
     {"rounds=2", "local={kind='sgd', batch=4, learning_rate=0.1}", "data={path='images'}",
      "model={kind='neural_network', layers=['residual(body=[conv2d(1, 5, padding=2)])', 'dense(classes)']}"}},
    {"layer",
     "residual",
     "shortcut",
     {"model={kind='neural_network', layers=['residual(body=[conv2d(1, padding=1)])', 'dense(classes)']}"},
     {"-"},
     {"rounds=2", "local={kind='sgd', batch=4, learning_rate=0.1}", "data={path='images'}",
      "model={kind='neural_network', layers=['residual(body=[conv2d(1, padding=1)], shortcut=[conv2d(1, 1)])', 'dense(classes)']}"}},
    {"compressor.down", "", "exclude", {kMlp[0], kMlp[1], "compressor.down={kind='top_k', k=5}"}, {"['1.dense.bias']"}},
};

// Returns an array of bytes in the format of numpy.save.
inline std::string npy_bytes(const std::string& shape, const std::string& entries) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + ", }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xFF);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + entries;
}

// Returns images of 3 classes, each with a bright corner of its own.
inline std::string images(std::size_t rows, std::size_t side) {
  std::string entries;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t p = 0; p < side * side; ++p) entries += static_cast<char>((37 * i + 11 * p + (p % (i % 3 + 2)) * 60) % 251);
  return entries;
}

// Returns every file that contexts name.
inline std::map<std::string, std::string> context_files() {
  std::map<std::string, std::string> files;
  std::string table = "size,kind,weight,label\n", test = table;
  for (int i = 0; i < 60; ++i) {
    const std::string line = std::to_string(i % 5) + "," +
                             (i % 4 == 0   ? "a"
                              : i % 4 == 1 ? "b"
                                           : "c") +
                             "," + std::to_string((i * 7) % 11) + "." + std::to_string(i % 10) + "," +
                             std::to_string(i % 2 + (i % 5 > 3 ? 1 : 0) * (1 - i % 2)) + "\n";
    table += line;
    if (i % 4 == 0) test += line;
  }
  files["table.csv"] = table;
  files["gaps.csv"] = "x,y\n";
  for (int i = 0; i < 60; ++i)
    files["gaps.csv"] += (i % 5 == 2 ? std::string("NA") : std::to_string((7 * i) % 11 - 5)) + "," + std::to_string(i % 3 == 0) + "\n";
  files["table_test.csv"] = test;
  std::string words, text;
  for (int i = 0; i < 400; ++i)
    words += (i % 7 == 0 ? "so " : i % 5 == 0 ? "it " : i % 3 == 0 ? "goes " : "on ") + std::string(i % 40 == 39 ? "\n" : "");
  files["words.tokens"] = words;
  files["text.txt"] = words;
  std::string roles, plain = words;
  std::ranges::replace(plain, '\n', ' ');
  for (int role = 0; role < 6; ++role) roles += "play\trole" + std::to_string(role) + "\t" + plain.substr(13 * role, 30 + 25 * role) + "\n";
  files["roles/x_roles.tsv"] = roles;
  for (const auto& [folder, side] : {std::pair<std::string, std::size_t>{"images", 12}, {"images28", 28}}) {
    std::string labels;
    for (std::size_t i = 0; i < 24; ++i) labels += static_cast<char>(i % 3);
    const std::string length = std::to_string(side);
    files[folder + "/features.npy"] = npy_bytes("(24, 1, " + length + ", " + length + ")", images(24, side));
    files[folder + "/labels.npy"] = npy_bytes("(24,)", labels);
  }
  std::string ratings = "userId,movieId,rating,timestamp\n";
  for (int user = 1; user <= 5; ++user)
    for (int item = 1; item <= 6; ++item)
      ratings += std::to_string(user) + "," + std::to_string((user * item) % 17 + 1) + "," + std::to_string(item % 5 + 1) + "," +
                 std::to_string(item) + "\n";
  files["ratings.csv"] = ratings;
  std::string split_a = "row,client\n", split_b = split_a, rows_a = "round,client,step,rows\n", rows_b = rows_a;
  for (int row = 0; row < 120; ++row) {
    split_a += std::to_string(row) + "," + std::to_string(row % 4) + "\n";
    split_b += std::to_string(row) + "," + std::to_string(row / 30) + "\n";
  }
  files["split_a.csv"] = split_a;
  files["split_b.csv"] = split_b;
  std::string trace_a = "round,client\n", trace_b = trace_a;
  for (int round = 1; round <= 6; ++round)
    for (int client = 0; client < 4; ++client) {
      const std::string at = std::to_string(round) + "," + std::to_string(client);
      rows_a += at + ",0," + std::to_string((round + client) % 20) + "\n";
      rows_b += at + ",0," + std::to_string((3 * round + client) % 20) + "\n";
      if ((round + client) % 2 == 0) trace_a += at + "\n";
      if ((round + client) % 3 == 0) trace_b += at + "\n";
    }
  files["devices.csv"] = "client,flops,bandwidth\n*,1e9,1e9\n";
  files["devices_b.csv"] = "client,flops,bandwidth\n*,1e8,1e8\n";
  files["rates.csv"] = "time_s,down,up\n0,1e3,1e3\n2,1e4,1e4\n";
  files["rates_b.csv"] = "time_s,down,up\n0,1e5,1e4\n";
  files["hours.csv"] = "client,from_s,until_s\n*,0,0.4\n";
  files["hours_b.csv"] = "client,from_s,until_s\n*,1,50\n";
  files["rows_a.csv"] = rows_a;
  files["rows_b.csv"] = rows_b;
  files["trace_a.csv"] = trace_a;
  files["trace_b.csv"] = trace_b;
  for (const char* name : {"start_a.txt", "start_b.txt"})
    for (int j = 0; j < 113; ++j) files[name] += std::to_string(0.01 * (name[6] == 'a' ? j : 113 - j)) + "\n";
  return files;
}

}  // namespace fl::test
