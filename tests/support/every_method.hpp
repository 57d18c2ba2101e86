// A short run of every method with the parts that it needs, for tests that a change affects no method's results. A feedback or local update
// without a line here gets a study that is made from its own description.
#pragma once

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/fitting.hpp"

namespace fl::test {

struct Method {
  std::string label, feedback, local, up, more;
};
inline void PrintTo(const Method& m, std::ostream* out) { *out << m.label; }

inline const std::string kGradient = "kind = 'gradient'\nbatch = 3\nlearning_rate = 0.05";
inline const std::string kTop = "kind = 'top_k'\nk = 5";
inline const std::string kUnbiased = "kind = 'random_k'\nk = 9\nscaled = true";

// Returns the methods with their own options or partners.
inline std::vector<Method> written_methods() {
  return {
      {"none", "kind = 'none'", kGradient, "kind = 'qsgd'", ""},
      {"ef14", "kind = 'ef14'", kGradient, kTop, ""},
      {"median", "kind = 'ef14'", kGradient, kTop, "[aggregation]\nkind = 'coordinate_median'\n"},
      {"clipped", "kind = 'ef14'", kGradient, kTop, "[postprocessor]\nkind = 'norm_clipping'\nlimit = 0.2\n"},
      {"clipped_steps", "kind = 'diana'\nalpha = 0.05", "kind = 'sgd'\nbatch = 3\nsteps = 2\nlearning_rate = 0.05", kUnbiased,
       "[postprocessor]\nkind = 'norm_clipping'\nlimit = 0.002\nnorm = 'infinity'\n"},
      {"clipped_estimate", "kind = 'ef21'", kGradient, kTop, "[postprocessor]\nkind = 'norm_clipping'\nlimit = 0.1\nside = 'server'\n"},
      {"adamw", "kind = 'ef14'", "kind = 'sgd'\nbatch = 3\nsteps = 2\nlearning_rate = 0.05", kTop, "[local_optimizer]\nkind = 'adamw'\n"},
      {"adamw_of_clients", "kind = 'ef14'", "kind = 'sgd'\nbatch = 3\nsteps = 2\nlearning_rate = 0.05", kTop,
       "[participation]\nkind = 'uniform'\nclients = 3\n[local_optimizer]\nkind = 'adamw'\nstate = 'client'\n"},
      {"ef14_momentum", "kind = 'ef14'", kGradient, kTop, "[server]\nkind = 'sgd'\nmomentum = 0.9\n"},
      {"ef14_sampled", "kind = 'ef14'", "kind = 'sgd'\nbatch = 3\nsteps = 2\nlearning_rate = 0.05", kTop,
       "[participation]\nkind = 'uniform'\nclients = 3\n[compressor.down]\nkind = 'top_k'\nk = 12\n"},
      {"ef21", "kind = 'ef21'", kGradient, kTop, ""},
      {"ef21_momentum", "kind = 'ef21'\nmomentum = 0.3", kGradient, kTop, ""},
      {"diana", "kind = 'diana'\nalpha = 0.05", kGradient, kUnbiased, ""},
      {"ef_bv", "kind = 'ef_bv'\nlambda = 0.2\nnu = 0.8", kGradient, kUnbiased, ""},
      {"econtrol", "kind = 'econtrol'", kGradient, kTop, ""},
      {"ec_diana", "kind = 'ec_diana'", kGradient, kTop + "\nunit = 'step'\n[compressor.up.shift]\nkind = 'qsgd'", ""},
      {"cser", "kind = 'cser'\nreset_every = 3", kGradient, kTop + "\nunit = 'step'", ""},
      {"marina", "kind = 'marina'\np = 0.4", "kind = 'gradient_difference'\nbatch = 3\nlearning_rate = 0.05", kUnbiased, ""},
      {"scaffold", "kind = 'scaffold'", "kind = 'scaffold'\nbatch = 3\nsteps = 2\nlearning_rate = 0.05", "kind = 'identity'",
       "[participation]\nkind = 'uniform'\nclients = 3\n"},
      {"feddyn", "kind = 'feddyn'", "kind = 'feddyn'\nepochs = 2\nbatch = 3\nlearning_rate = 0.05\nstragglers = 0.5", kTop,
       "[participation]\nkind = 'uniform'\nclients = 3\n"},
      {"mime_lite", "kind = 'mime_lite'", "kind = 'mime_lite'\nbatch = 3\nsteps = 2\nlearning_rate = 0.05\nschedule = 'cosine'", kTop,
       "[participation]\nkind = 'uniform'\nclients = 3\n"},
      {"lag", "kind = 'lag'\nxi = 1.0", "kind = 'gradient'\nlearning_rate = 0.05", "kind = 'identity'", ""},
      {"momentum_correction", "kind = 'momentum_correction'", kGradient, kTop, ""},
      {"cafe", "kind = 'cafe'", kGradient, kTop, ""},
      {"clip21", "kind = 'clip21'\ntau = 0.1", kGradient, kTop, ""},
      {"dasha", "kind = 'dasha'\na = 0.04", "kind = 'mvr'\nbatch = 3\nlearning_rate = 0.05", kUnbiased, ""},
      {"ec_gd_star", "kind = 'ec_gd_star'", "kind = 'gradient'\nlearning_rate = 0.05\nsubtract = 'optimum'", kTop + "\nunit = 'step'", ""},
      {"ec_lsvrg", "kind = 'ec_lsvrg'", "kind = 'lsvrg'\nbatch = 1\nlearning_rate = 0.05", kTop + "\nunit = 'step'", ""},
      {"ef21_normalised", "kind = 'ef21_normalised'\nmomentum = 0.5", kGradient, kTop, ""},
      {"ef21_p", "kind = 'ef21_p'\nalpha = 0.05", kGradient, kUnbiased, "[compressor.down]\nkind = 'top_k'\nk = 20\n"},
      {"ef21_plus", "kind = 'ef21_plus'", kGradient, kTop, ""},
      {"ef21_sgdm", "kind = 'ef21_sgdm'", kGradient, kTop, ""},
      {"fedcomgate", "kind = 'fedcomgate'", "kind = 'fedcomgate'\nbatch = 3\nsteps = 2\nlearning_rate = 0.05",
       "kind = 'random_k'\nk = 60\nscaled = true", ""},
      {"fedpaq", "kind = 'fedpaq'", "kind = 'sgd'\nbatch = 3\nsteps = 2\nlearning_rate = 0.05", kUnbiased, ""},
      {"power_ef", "kind = 'power_ef'\nsteps = 2", kGradient, kTop, ""},
      {"sa_pef", "kind = 'sa_pef'", "kind = 'sgd'\nbatch = 3\nsteps = 2\nlearning_rate = 0.05", kTop, ""},
      {"scafcom", "kind = 'scafcom'", "kind = 'scallion'\nbatch = 3\nsteps = 2\nlearning_rate = 0.05", kTop, ""},
      {"scallion", "kind = 'scallion'\nalpha = 0.07", "kind = 'scallion'\nbatch = 3\nsteps = 2\nlearning_rate = 0.05", kUnbiased, ""},
      {"signum", "kind = 'signum'", kGradient, "kind = 'sign'", ""},
      {"three_pc", "kind = 'three_pc'\nvariant = 'adacgd'\nzeta = 4.0", kGradient, kTop, ""},
      // Operators with state per client.
      {"variance_based", "kind = 'none'", kGradient, "kind = 'variance_based'", ""},
      {"drive", "kind = 'ef14'", kGradient, "kind = 'drive'\nscale = 'min_error'", ""},
      {"vqsgd", "kind = 'ef14'", kGradient, "kind = 'vqsgd'\nscaled = true", ""},
      {"sidco", "kind = 'ef14'", kGradient, "kind = 'sidco'", ""},
      {"sketched_sgd", "kind = 'ef14'", kGradient, "kind = 'sketched_sgd'\nk = 5\nrows = 3\ncolumns = 40", ""},
      // Operators around operators.
      {"induced", "kind = 'diana'\nalpha = 0.05", kGradient, "kind = 'induced'\nbiased = { kind = 'top_k', k = 5 }", ""},
      {"accordion", "kind = 'ef14'", kGradient,
       "kind = 'accordion'\nwindow = 2\ncritical = { kind = 'top_k', k = 20 }\notherwise = { kind = 'atomo', k = 5 }", ""},
      {"lgreco", "kind = 'ef14'", kGradient,
       "kind = 'lgreco'\nadjust_every = 3\nreference = { kind = 'top_k', k = 9 }\ncandidates = [{ kind = 'top_k', k = 3 }]", ""},
      {"schedule", "kind = 'ef14'", kGradient,
       "kind = 'schedule'\nfrom = [1, 5]\nstages = [{ kind = 'top_k', k = 20 }, { kind = 'top_k', k = 4 }]", ""},
      // Operators of matrices.
      {"powersgd", "kind = 'ef14'", kGradient, "kind = 'powersgd'\nscope = 'tensor'\nrank = 1", ""},
      {"rank_r_svd", "kind = 'ef14'", kGradient, "kind = 'rank_r_svd'\nscope = 'tensor'\nrank = 1", ""},
      {"gradzip", "kind = 'ef14'", kGradient, "kind = 'gradzip'\nscope = 'tensor'\nrank = 1", ""},
      {"star", "kind = 'ef14'", "kind = 'gradient'\nlearning_rate = 0.05\nsubtract = 'optimum'", kTop, ""},
  };
}

// Returns the kind that the lines of a table begin with.
inline std::string kind_of(const std::string& lines) {
  const std::size_t begin = lines.find('\'') + 1;
  return lines.substr(begin, lines.find('\'', begin) - begin);
}

inline Method method_of(const Fitting& study, const std::string& label) {
  Method method{label, study.feedback.lines(), study.local.lines(), study.up.lines(), ""};
  for (const auto& [channel, op] : study.channels) method.up += "\n[compressor.up." + channel + "]\n" + op.lines();
  if (study.down) method.more = "[compressor.down]\n" + study.down->lines() + "\n";
  return method;
}

// Returns one method for every feedback of the registry, built from its needs.
inline std::vector<Method> fitting_methods() {
  std::vector<Method> all;
  for (const std::string& feedback : Registry::instance().names("feedback")) all.push_back(method_of(fitting_study(feedback), feedback));
  return all;
}

// Returns the written methods, and one for each feedback and local update that none of them uses.
inline std::vector<Method> methods() {
  std::vector<Method> all = written_methods();
  const auto has = [&all](std::string Method::*table, const std::string& kind) {
    return std::ranges::any_of(all, [&](const Method& method) { return kind_of(method.*table) == kind; });
  };
  for (const Method& method : fitting_methods())
    if (!has(&Method::feedback, kind_of(method.feedback))) all.push_back(method);
  for (const std::string& kind : Registry::instance().names("local_update"))
    if (!has(&Method::local, kind)) all.push_back(method_of(fitting_study_of_local_update(kind), "local_" + kind));
  return all;
}

// Returns whether a method needs matrices, and hence a multinomial model. Devices round its products differently.
inline bool is_of_matrices(const Method& m) { return m.label == "powersgd" || m.label == "rank_r_svd" || m.label == "gradzip"; }

inline std::string text_of(const Method& m, const std::string& precision) {
  const std::string problem = is_of_matrices(m) ? "[data]\nkind = 'synthetic'\nclients = 7\nfeatures = 9\nclasses = 5\n[partition]\nkind = "
                                                  "'natural'\nclients = 7\n"
                                                : "[data]\nname = 'mushrooms'\nrows = 200\n[partition]\nkind = 'shuffled'\nclients = 7\n";
  return "name = 'checkpoint'\nrounds = 14\nprecision = '" + precision + "'\n" + problem +
         "[model]\nkind = 'logistic_regression'\nl2 = 0.01\n[evaluate]\nevery = 3\naverage = true\n[local]\n" + m.local +
         "\n[compressor.up]\n" + m.up + "\n[feedback.up]\n" + m.feedback + "\n" + m.more;
}

}  // namespace fl::test
