#include "tw/measure/result.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "tw/base/error.h"
#include "tw/measure/compare.h"

namespace tw::measure {

namespace {

using nlohmann::json;

bool has_type(const json& value, const std::string& type) {
  if (type == "string") return value.is_string();
  if (type == "number") return value.is_number();
  if (type == "integer") return value.is_number_integer();
  if (type == "boolean") return value.is_boolean();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  return false;
}

void object_faults(const json& value, const json& schema, const std::string& where,
                   std::vector<std::string>& out) {
  const json properties = schema.value("properties", json::object());
  for (const std::string& name : schema.value("required", std::vector<std::string>{}))
    if (!value.contains(name)) out.push_back(fmt::format("{} lacks '{}'", where, name));
  for (const auto& [name, field] : value.items()) {
    if (properties.contains(name)) {
      for (std::string& f : schema_faults(field, properties[name], where + "." + name))
        out.push_back(std::move(f));
    } else if (schema.value("additionalProperties", json(true)) == json(false)) {
      out.push_back(fmt::format("{} has the unknown field '{}'", where, name));
    }
  }
}

void array_faults(const json& value, const json& schema, const std::string& where,
                  std::vector<std::string>& out) {
  const size_t least = schema.value("minItems", size_t{0});
  const size_t most = schema.value("maxItems", value.size());
  if (value.size() < least || value.size() > most)
    out.push_back(fmt::format("{} has {} items", where, value.size()));
  if (!schema.contains("items")) return;
  for (size_t i = 0; i < value.size(); ++i)
    for (std::string& f : schema_faults(value[i], schema["items"], fmt::format("{}[{}]", where, i)))
      out.push_back(std::move(f));
}

template <class T>
void read(const json& j, const char* name, T& to) {
  try {
    j.at(name).get_to(to);
  } catch (const json::exception&) {
    throw UserError(fmt::format("a result row lacks the field '{}', or its type is wrong", name));
  }
}

std::string peer_of(const Row& r) { return r.peer.empty() ? "-" : r.peer; }

}  // namespace

json to_json(const Row& r) {
  return {{"kernel", r.kernel},
          {"shape", r.shape},
          {"dtype", r.dtype},
          {"threads", r.threads},
          {"cache", r.cache},
          {"mapping", r.mapping},
          {"device", r.device},
          {"driver", r.driver},
          {"toolchain", r.toolchain},
          {"date", r.date},
          {"commit", r.commit},
          {"suite", r.suite},
          {"time_us", r.time_us},
          {"time_ci95", {r.time_ci95[0], r.time_ci95[1]}},
          {"ci95", {r.ci95[0], r.ci95[1]}},
          {"chance", r.chance},
          {"peer", r.peer},
          {"peer_about", r.peer_about},
          {"peer_us", r.peer_us},
          {"ratio", r.ratio},
          {"bytes", r.bytes},
          {"flops", r.flops},
          {"limit_us", r.limit_us},
          {"fraction", r.fraction},
          {"ceiling_fraction", r.ceiling_fraction},
          {"bound", r.bound},
          {"verified", r.verified},
          {"max_err_over_bound", r.max_err_over_bound},
          {"blocks", r.blocks},
          {"disturbed", r.disturbed}};
}

Row row_of(const json& j) {
  Row r;
  read(j, "kernel", r.kernel);
  read(j, "shape", r.shape);
  read(j, "dtype", r.dtype);
  read(j, "threads", r.threads);
  read(j, "cache", r.cache);
  read(j, "mapping", r.mapping);
  read(j, "device", r.device);
  read(j, "driver", r.driver);
  read(j, "toolchain", r.toolchain);
  read(j, "date", r.date);
  read(j, "commit", r.commit);
  read(j, "suite", r.suite);
  read(j, "time_us", r.time_us);
  if (j.contains("time_ci95")) read(j, "time_ci95", r.time_ci95);
  read(j, "ci95", r.ci95);
  if (j.contains("chance")) read(j, "chance", r.chance);
  read(j, "peer", r.peer);
  read(j, "peer_about", r.peer_about);
  read(j, "peer_us", r.peer_us);
  read(j, "ratio", r.ratio);
  read(j, "bytes", r.bytes);
  read(j, "flops", r.flops);
  read(j, "limit_us", r.limit_us);
  read(j, "fraction", r.fraction);
  read(j, "ceiling_fraction", r.ceiling_fraction);
  read(j, "bound", r.bound);
  read(j, "verified", r.verified);
  read(j, "max_err_over_bound", r.max_err_over_bound);
  read(j, "blocks", r.blocks);
  read(j, "disturbed", r.disturbed);
  return r;
}

std::vector<std::string> schema_faults(const json& value, const json& schema,
                                       const std::string& where) {
  std::vector<std::string> out;
  if (schema.contains("type") && !has_type(value, schema["type"])) {
    out.push_back(
        fmt::format("{} is {}, wanted {}", where, value.dump(), schema["type"].get<std::string>()));
    return out;
  }
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
    out.push_back(
        fmt::format("{} is {}, wanted one of {}", where, value.dump(), schema["enum"].dump()));
  if (value.is_number() && schema.contains("minimum") && value < schema["minimum"])
    out.push_back(fmt::format("{} is {}, below {}", where, value.dump(), schema["minimum"].dump()));
  if (value.is_object()) object_faults(value, schema, where, out);
  if (value.is_array()) array_faults(value, schema, where, out);
  return out;
}

Wins wins(const std::vector<Row>& rows) {
  std::map<std::string, const Row*> best;
  Wins w;
  for (const Row& r : rows) {
    w.alone += r.peer.empty();
    if (r.peer.empty()) continue;
    const Row*& known =
        best[fmt::format("{}; {}; {}; {}; {}", r.kernel, r.shape, r.dtype, r.threads, r.cache)];
    if (known == nullptr || r.ratio < known->ratio) known = &r;
  }
  std::vector<double> chances;
  for (const auto& [problem, r] : best) {
    chances.push_back(r->chance);
    w.mean += std::log(r->ratio) / static_cast<double>(best.size());
  }
  const std::vector<bool> faster = faster_of_many(chances);
  w.won = static_cast<int>(std::ranges::count(faster, true));
  w.problems = static_cast<int>(best.size());
  w.mean = std::exp(w.mean);
  return w;
}

std::string to_string(const Wins& w) {
  std::string text = fmt::format(
      "{} of {} problems won, by 2 % over the best peer at 95 % for all of them together; "
      "geometric mean {:.3f}",
      w.won, w.problems, w.mean);
  if (w.alone > 0) text += fmt::format("; {} without a peer", w.alone);
  return text;
}

std::string to_table(const std::vector<Row>& rows) {
  size_t shape = 5, kernel = 6, peer = 4;
  for (const Row& r : rows) {
    shape = std::max(shape, r.shape.size());
    kernel = std::max(kernel, r.kernel.size());
    peer = std::max(peer, peer_of(r).size());
  }
  std::string text = fmt::format(
      "{:{}}  {:{}}  {:5} {:2} {:4}  {:>11}  {:>11}  {:{}}  {:>6} {:15}  {:>6} {:>7}  {}\n",
      "kernel", kernel, "shape", shape, "dtype", "th", "", "us", "peer us", "peer", peer, "ratio",
      " 95 % interval", "limit", "ceiling", "err/bound");
  for (const Row& r : rows) {
    const bool with = !r.peer.empty();
    const std::string ratio = with ? fmt::format("{:6.3f}", r.ratio) : "-";
    const std::string interval =
        with ? fmt::format("[{:6.3f},{:6.3f}]", r.ci95[0], r.ci95[1]) : "-";
    text += fmt::format(
        "{:{}}  {:{}}  {:5} {:2} {:4}  {:11.2f}  {:>11}  {:{}}  {:>6} {:15}  {:6.3f} {:7.3f}  "
        "{:.2f}{}\n",
        r.kernel, kernel, r.shape, shape, r.dtype, r.threads, r.cache, r.time_us,
        with ? fmt::format("{:.2f}", r.peer_us) : "-", peer_of(r), peer, ratio, interval,
        r.fraction, r.ceiling_fraction, r.max_err_over_bound,
        r.disturbed > 0 ? fmt::format("  disturbed {} of {}", r.disturbed, r.blocks) : "");
  }
  return text;
}

}  // namespace tw::measure
