// Names in papers and other programs for the keys, parts, values and data sets of fedbits. The grammar is in fl_core/config/meanings.hpp.
#include "fl_core/config/meanings.hpp"

namespace fl {
namespace {

// clang-format off
constexpr FieldWord kWords[] = {
    // the run
    {"num_rounds, n_rounds, rounds, comm_rounds, comm_round, communication_rounds, global_rounds, global_epochs, max_rounds, iterations, "
     "num_iterations", "rounds"},
    {"experiment_name, exp_name, run_name, title", "name"},
    {"random_seed, rng_seed, manual_seed", "seed"},
    {"seeds, num_seeds, n_seeds, repetitions, repeats, trials", "sweep.seeds"},
    {"dtype, data_type", "precision"},
    {"double, fp64, f64", "precision=float64"},
    {"single, float, fp32, f32", "precision=float32"},
    {"target_accuracy, target_acc", "stop.accuracy"},
    {"early_stopping, stopping, stop_criterion, termination", "[stop]"},
    {"sweeps, grid, grid_search, hyperparameters, search", "[sweep]"},
    {"axes, axis", "sweep.axis"},
    {"tuning, tune, hyperparameter_search", "sweep.tune"},

    // data
    {"dataset, datasets, data_set", "[data]"},
    {"dataset, dataset_name, data_name, task", "data.name"},
    {"data_path, data_dir, datapath, datadir, dataset_path, dataset_dir, data_root, data_file", "data.path"},
    {"test_size, val_fraction, val_split, validation_fraction, validation_split, test_split, holdout", "data.test_fraction"},
    {"augmentation, data_augmentation, transform, transforms", "data.augment"},
    {"normalize, normalization, normalisation, standardize", "data.normalise"},
    {"seq_len, sequence_length, seq_length, bptt, context_length", "data.sequence"},
    {"fmnist, fashionmnist, fashion", "data.name=fashion-mnist"},
    {"mnist, digits", "data.name=mnist"},
    {"cifar, cifar10", "data.name=cifar10"},
    {"cifar100, cifar_fine", "data.name=cifar100"},
    {"femnist, emnist, leaf", "data.path", "", "EMNIST's files are read from a folder, with format = \"idx\""},
    {"shakespeare, leaf_shakespeare", "data.name=shakespeare"},
    {"wikitext, wikitext2, wiki2", "data.name=wikitext-2"},
    {"movielens, movielens100k, ml100k", "data.name=ml-100k"},
    {"adult, a9a", "data.name=libsvm/a9a"},
    {"mushroom, mushrooms", "data.name=libsvm/mushrooms"},
    {"w8a", "data.name=libsvm/w8a"},
    {"synthetic, synthetic_1_1, synthetic11", "data.kind=synthetic"},
    {"quadratic, quadratics", "data.kind=quadratics"},

    // clients and their rows
    {"clients, num_clients, n_clients, num_users, n_parties, num_parties, num_workers, n_workers, workers, num_devices, nodes, num_nodes, "
     "total_clients, num_total_clients", "partition.clients"},
    {"alpha, dirichlet_alpha, dir_alpha, concentration, non_iid_alpha, partition_alpha", "partition.alpha", "", "of kind = \"dirichlet_client\""},
    {"dirichlet_beta, dir_beta", "partition.beta", "", "of kind = \"dirichlet_class\""},
    {"split, splitting, partitioning, heterogeneity, distribution, data_distribution, skew", "[partition]"},
    {"iid, homogeneous, random_split, iid_split", "partition.kind=shuffled"},
    {"non_iid, heterogeneous, hetero, dirichlet, lda, latent_dirichlet, label_dirichlet, hetero_dir", "partition.kind=dirichlet_class", "",
     "or \"dirichlet_client\", which gives each client a mixture of classes"},
    {"dirichlet, lda", "partition.kind=dirichlet_client"},
    {"pathological, shards, shard, mcmahan", "partition.kind=sorted_by_label", "partition.pieces_per_client=2"},
    {"label_skew, quantity_label_skew, k_classes, classes_per_client", "partition.kind=n_classes"},
    {"quantity, size_skew, unbalanced", "partition.kind=quantity_skew"},
    {"by_user, by_writer, by_client, users", "partition.kind=natural"},

    // local work
    {"lr, learning_rate, step_size, stepsize, gamma, eta, client_lr, client_learning_rate, local_lr, local_learning_rate, lr_client, "
     "learningrate", "local.learning_rate"},
    {"batch, batch_size, bs, local_bs, minibatch, minibatch_size, mini_batch_size, train_batch_size, local_batch_size", "local.batch"},
    {"epochs, epoch, local_epochs, num_epochs, n_epochs, local_ep, client_epochs, num_local_epochs", "local.epochs"},
    {"steps, local_steps, num_steps, local_iterations, num_local_steps, local_iters, local_updates", "local.steps"},
    {"momentum, client_momentum, local_momentum", "local.momentum"},
    {"wd, weight_decay", "local.weight_decay"},
    {"prox_mu, proximal, proximal_mu, fedprox_mu, mu_prox, mu", "local.proximal_mu"},
    {"lr_schedule, lr_scheduler, scheduler", "local.schedule"},
    {"cosine_annealing, cosine_decay", "local.schedule=cosine"},
    {"step_lr, multistep, steplr, stepwise", "local.schedule=step"},
    {"training, train, trainer, client, client_update, local_update, local_training", "[local]"},
    {"optimizer, optimiser, optim, client_optimizer", "[local_optimizer]", "",
     "for clients sgd and adamw; adam, yogi and adagrad are a server's: server.kind = \"adam\""},
    {"adam_w, client_adam, local_adam, local_adamw, fedadamw", "local_optimizer.kind=adamw"},
    {"local_sgd, fedavg, client_sgd", "local.kind=sgd"},
    {"fedprox", "local.kind=sgd", "local.proximal_mu=0.01"},
    {"gd, gradient_descent, fedsgd, dgd, full_gradient", "local.kind=gradient"},
    {"svrg, l_svrg, loopless_svrg", "local.kind=lsvrg"},
    {"mime", "local.kind=mime_lite", "feedback.up.kind=mime_lite"},

    // participation
    {"fraction, frac, sample_fraction, sampling_fraction, fraction_fit, fraction_train, participation, participation_rate, participation_ratio, "
     "client_fraction, sample_rate, sampling_rate, join_ratio, part_rate", "participation.fraction", "", "of kind = \"uniform\""},
    {"clients_per_round, num_clients_per_round, client_num_per_round, cohort_size, num_sampled_clients, sampled_clients, "
     "min_fit_clients", "participation.clients", "", "of kind = \"uniform\""},
    {"client_selection, client_sampling, selection, sampling, sampler, availability", "[participation]"},
    {"random, random_sampling, uniform_sampling, partial", "participation.kind=uniform"},
    {"bernoulli, independent", "participation.kind=poisson"},
    {"all, everyone, full_participation", "participation.kind=full"},
    {"round_robin", "participation.kind=cyclic"},
    {"importance, weighted_sampling, md_sampling", "participation.kind=by_data"},

    // models
    {"network, net, architecture, arch, nn_model", "[model]"},
    {"model, model_name, model_type", "model.kind"},
    {"cnn, convnet, femnist_cnn, conv, mcmahan_cnn", "model.kind=cnn_mcmahan"},
    {"cnn, cifar_cnn, simple_cnn", "model.kind=cnn_cifar"},
    {"lenet", "model.kind=lenet5"},
    {"resnet, resnet20, resnet34, resnet50, resnet9, resnet18", "model.kind=resnet18"},
    {"mlp, perceptron, fc, dnn, ann, fully_connected, multilayer_perceptron", "model.kind=mlp"},
    {"2nn", "model.kind=2nn_mcmahan"},
    {"lstm, rnn, gru, stacked_lstm, char_rnn", "model.kind=char_lstm"},
    {"logreg, logistic, log_reg, lr, logistic_reg, softmax_regression, softmax, mclr", "model.kind=logistic_regression"},
    {"linreg, least_squares, ridge, ridge_regression, linear_reg, ols", "model.kind=linear_regression"},
    {"sequential, custom, nn, neural_net", "model.kind=neural_network"},
    {"matrix_factorization, matrix_factorisation, neumf, gmf", "model.kind=ncf"},
    {"l2_reg, l2_regularization, l2_regularisation, lambda, reg, regularization, regularisation, regularizer, ridge_penalty", "model.l2"},
    {"hidden, hidden_size, hidden_dim, hidden_units, hidden_layers", "model.hidden"},
    {"init, initial, initialization, initialisation, initial_model, pretrained, checkpoint", "[start]"},
    {"linear, fc, fully_connected", "layer=dense"},
    {"conv, convolution, convolutional", "layer=conv2d"},
    {"maxpool, maxpool2d, max_pooling", "layer=max_pool"},
    {"avgpool, avg_pool, average_pool, avgpool2d", "layer=mean_pool"},
    {"bn, batchnorm, batchnorm2d", "layer=batch_norm"},
    {"gn, groupnorm", "layer=group_norm"},

    // compression
    {"compression, compress, compressors, quantization, quantisation, quantizer, sparsification, sparsifier, uplink, upload", "[compressor.up]"},
    {"downlink, download, broadcast, server_compressor", "[compressor.down]"},
    {"compression_ratio, sparsity, density, ratio, keep_ratio, sparsity_ratio, topk_ratio", "compressor.up.ratio"},
    {"num_bits, n_bits, quantization_bits, bitwidth, bit_width", "compressor.up.bits", "", "of kind = \"lpc\" or \"eden\""},
    {"num_levels, quantization_levels, quantization_level, n_levels", "compressor.up.levels", "", "of kind = \"qsgd\""},
    {"topk, top_k_sparsification, top_k_sparsifier, magnitude, largest", "compressor.up.kind=top_k"},
    {"randk, rand_k, random_sparsification, random_mask, rand_sparsification", "compressor.up.kind=random_k"},
    {"permk, permutation, permutation_compressor, perm_compressor", "compressor.up.kind=perm_k"},
    {"none, identity, no_compression, uncompressed, nocompression, full_precision, dense", "compressor.up.kind=identity"},
    {"quantize, quantise, stochastic_quantization, uniform_quantization, dithering, random_dithering", "compressor.up.kind=qsgd"},
    {"signsgd, sign_sgd, scaled_sign", "compressor.up.kind=sign"},
    {"ternary, tern_grad", "compressor.up.kind=terngrad"},
    {"threshold, thresholding, hard_thresholding, threshold_v", "compressor.up.kind=hard_threshold"},
    {"low_rank, lowrank, rank_r, power_sgd", "compressor.up.kind=powersgd"},
    {"natural_compression", "compressor.up.kind=natural"},
    {"sparse_ternary", "compressor.up.kind=stc"},
    {"countsketch, count_sketch, sketch, fetchsgd", "compressor.up.kind=sketched_sgd"},
    {"layer, layerwise, layer_wise, per_layer", "compressor.up.scope=tensor"},
    {"global, whole, all", "compressor.up.scope=model"},
    {"block, blocks, chunk", "compressor.up.scope=bucket"},
    {"delta, model_update, weights_diff", "compressor.up.unit=update"},
    {"grad, grads, gradients", "compressor.up.unit=gradient"},

    // error feedback
    {"error_feedback, ef, memory, residual, error_memory, error_compensation", "[feedback.up]"},
    {"ef, ef_sgd, efsgd, error_feedback, error_compensation, mem_sgd, memsgd, ef_signsgd, residual, ec_sgd, ecsgd, ef_topk", "feedback.up.kind=ef14"},
    {"ef21", "feedback.up.kind=ef21"},
    {"none, no_feedback, no_error_feedback, identity, no, off", "feedback.up.kind=none"},
    {"ef21_momentum, ef21_m", "feedback.up.kind=ef21_sgdm"},
    {"ecgd, ec_gd", "feedback.up.kind=ec_gd_star"},
    {"dgc_momentum, momentum_masking_dgc", "feedback.up.kind=momentum_correction"},
    {"scaffold", "feedback.up.kind=scaffold", "local.kind=scaffold"},

    // the server
    {"server_lr, server_learning_rate, global_lr, global_learning_rate, lr_server, server_step_size", "server.learning_rate"},
    {"server_momentum, global_momentum, server_beta", "server.momentum"},
    {"clip, clipping, gradient_clipping, grad_clip, clip_grad_norm, norm_clip, max_grad_norm, clip_norm, clipping_norm",
     "postprocessor.kind=norm_clipping"},
    {"postprocessing, post_processor, postprocessors", "[postprocessor]"},
    {"aggregator, aggregation_rule, robust_aggregation, robust", "[aggregation]"},
    {"median, coordinatewise_median, coordinate_wise_median, comed", "aggregation.kind=coordinate_median"},
    {"stragglers, straggler_policy, late_clients", "[delivery]"},
    {"async, is_async, fedbuff, fedasync", "[asynchronous]"},
    {"staleness, staleness_weight", "asynchronous.staleness"},
    {"buffer_size, buffer_goal, aggregation_goal", "asynchronous.buffer"},
    {"overselection, over_select, over_sampling, overcommit, overcommitment, over_commit", "delivery.over_selection"},
    {"deadline, round_deadline, round_timeout, timeout", "delivery.deadline_s"},
    {"device, hardware, device_profiles, client_resources, device_heterogeneity, system_heterogeneity, clock, simulated_time", "[devices]"},
    {"flop_rate, gflops, compute_speed, device_speed, flops_per_second, compute_rate", "devices.flops"},
    {"memory_bandwidth", "devices.bandwidth"},
    {"ram, device_memory, memory_size", "devices.memory"},
    {"networks, links, network_profiles, network_conditions, communication_model, network_speed", "[network]"},
    {"bandwidth, uplink_bandwidth, upload_speed, upload_bandwidth, uplink_rate, up_rate", "network.up"},
    {"downlink_bandwidth, download_speed, download_bandwidth, downlink_rate, down_rate", "network.down"},
    {"latency, delay, rtt, ping, network_latency", "network.latency"},
    {"packet_loss, loss_rate, drop_rate", "network.loss"},
    {"client_availability, churn, dropout_model, device_availability, intermittent, availability_trace", "[availability]"},
    {"diurnal, time_zones, circadian", "availability.kind=day_and_night"},
    {"on_off, gilbert, markov_chain", "availability.kind=markov"},
    {"strategy, algorithm, method, server_optimizer, server_opt, fed_algorithm", "[server]"},
    {"fedadam, fed_adam", "server.kind=adam"},
    {"fedyogi, fed_yogi", "server.kind=yogi"},
    {"fedadagrad, fed_adagrad", "server.kind=adagrad"},
    {"fedavg, averaging, federated_averaging, fed_avg", "server.kind=sgd"},
    {"fedavgm", "server.kind=sgd", "server.momentum=0.9"},
    {"majority_vote, signsgd", "server.kind=sign_sgd"},
    {"fednova, nova", "server.average=normalised"},
    {"mean, by_rows", "server.average=weighted"},
    {"equal, unweighted", "server.average=uniform"},
    {"fedbn", "server.statistics=local"},
    {"fedper, fedrep, lg_fedavg, personal_layers, local_layers, personal_head, local_head", "model.keep"},

    // measures
    {"evaluation, eval, metrics, metric, logging, log", "[evaluate]"},
    {"eval_every, eval_freq, eval_interval, evaluation_interval, evaluate_every, test_every, frequency_of_the_test, log_every, "
     "log_interval", "evaluate.every"},
};

constexpr AbsentThing kAbsent[] = {
    {"privacy, dp, dp_sgd, dp_fedavg, differential_privacy, noise_multiplier, secure_aggregation, secagg",
     "fedbits has no privacy mechanism: neither differential privacy nor secure aggregation"},
    {"attack, attacks, byzantine, malicious, defense, defence, krum, trimmed_mean, robust_aggregation",
     "fedbits has neither malicious clients nor defences against them"},
    {"personalization, personalisation, personalized, pfedme, ditto, apfl",
     "fedbits has no personal models but tensors that stay with each client: model.keep"},
    {"topology, decentralized, decentralised, gossip, hierarchical, edge_servers", "all clients talk to one server: fedbits has no other topology"},
    {"vertical, vertical_fl, vfl", "clients hold rows: fedbits has no vertical partitions"},
};
// clang-format on

}  // namespace

std::span<const FieldWord> field_words() { return kWords; }
std::span<const AbsentThing> absent_things() { return kAbsent; }

}  // namespace fl
