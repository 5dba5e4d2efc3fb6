#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tw::measure {

/// One line of a benchmark: a kernel of ours at one shape, beside one peer. Field for field what
/// bench/schema.json says.
struct Row {
  std::string kernel, shape, dtype;  ///< "gemm", "k=64,m=64,n=64 epilogue=none", "f32"
  int threads = 1;
  std::string cache;    ///< "warm": inputs in the caches; "cold": from memory
  std::string mapping;  ///< one line, as chosen
  std::string device;   ///< the processor
  std::string driver;   ///< the operating system's release
  std::string toolchain, date, commit, suite;
  double time_us = 0;
  double time_ci95[2] = {0, 0};  ///< of time_us
  std::string peer, peer_about;  ///< "" without a peer; version and kernel set
  double peer_us = 0;
  double ratio = 0;             ///< peer_us / time_us, median over blocks; above 1: ours is faster
  double ci95[2] = {0, 0};      ///< of the ratio
  double chance = 1;            ///< that ours is not 2 % faster, see chance_of_blocks()
  double bytes = 0, flops = 0;  ///< least, see tw/limit
  double limit_us = 0;          ///< least time at the machine's rates
  double fraction = 0;          ///< limit_us / time_us; above 1 is a bug
  double ceiling_fraction = 0;  ///< the same with measured rates; may read 1.03
  std::string bound;            ///< of tw/limit: "arithmetic", "bandwidth", ..
  bool verified = false;
  double max_err_over_bound = 0;
  int blocks = 0, disturbed = 0;  ///< rounds, and those that other processes disturbed
};

nlohmann::json to_json(const Row& row);
/// Throws UserError naming the field that is missing or of the wrong type.
Row row_of(const nlohmann::json& j);

/// What is wrong with `value` under the schema (the keywords type, properties, required,
/// additionalProperties: false, items, minItems, maxItems, minimum, enum); empty when nothing is.
std::vector<std::string> schema_faults(const nlohmann::json& value, const nlohmann::json& schema,
                                       const std::string& where = "row");

/// How many problems were won: beside the best of its peers (least ratio) ours is faster, by
/// faster_of_many() of all problems that have a peer.
struct Wins {
  int won = 0, problems = 0, alone = 0;  ///< alone: problems without a peer
  double mean = 0;                       ///< geometric, of the ratios
};
Wins wins(const std::vector<Row>& rows);
std::string to_string(const Wins& w);

/// Rows as an aligned table for a terminal.
std::string to_table(const std::vector<Row>& rows);

}  // namespace tw::measure
