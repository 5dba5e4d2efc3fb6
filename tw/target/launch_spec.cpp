#include "tw/target/launch_spec.h"

#include <charconv>
#include <fmt/format.h>
#include <sstream>

#include "tw/base/error.h"

namespace tw {

namespace {

constexpr const char* kHeader = "launch1";

/// Reads the text line by line: a word that says what the line holds, then its fields.
class Reader {
 public:
  explicit Reader(const std::string& text) : lines_(text) {}

  LaunchSpec read() {
    next();
    if (line_ != kHeader) fail("wanted 'launch1'");
    for (next(); line_ != "end"; next()) item();
    return std::move(spec_);
  }

 private:
  void next() {
    ++number_;
    if (!std::getline(lines_, line_)) fail("the text ends; wanted 'end'");
    fields_.clear();
    fields_.str(line_);
  }

  [[noreturn]] void fail(const std::string& wanted) const {
    throw UserError(fmt::format("launch spec: line {}: '{}': {}", number_, line_, wanted));
  }

  std::string word() {
    std::string w;
    if (!(fields_ >> w)) fail("a field is missing");
    return w;
  }

  int64_t integer() {
    const std::string w = word();
    int64_t n = 0;
    auto [end, error] = std::from_chars(w.data(), w.data() + w.size(), n);
    if (error != std::errc() || end != w.data() + w.size()) fail("wanted an integer");
    return n;
  }

  Expr expression() {
    std::string rest;
    std::getline(fields_, rest);
    try {
      return parse_expr(rest, [&](const std::string& name) -> std::optional<Symbol> {
        for (size_t i = 0; i < spec_.dims.size(); ++i) {
          if (spec_.dims[i].name == name) return Symbol{SymbolKind::dim, static_cast<int>(i)};
        }
        return std::nullopt;
      });
    } catch (const UserError& e) {
      fail(e.message());
    }
  }

  void item() {
    const std::string what = word();
    if (what == "entry") {
      spec_.entry = word();
    } else if (what == "scratch") {
      spec_.scratch_bytes = integer();
    } else if (what == "in_order") {
      spec_.in_order = true;
    } else if (what == "messages") {
      spec_.messages = true;
    } else if (what == "early") {
      spec_.early = true;
    } else if (what == "block") {
      block();
    } else if (what == "cluster") {
      cluster();
    } else if (what == "map") {
      tensor_map();
    } else if (what == "dim") {
      std::string name = word();
      spec_.dims.push_back({name, integer()});
    } else if (what == "arg") {
      argument();
    } else if (what == "extent" && !spec_.args.empty()) {
      LaunchSpec::Arg& a = spec_.args.back();
      a.dims.push_back(expression());
      a.rank = static_cast<int>(a.dims.size());
    } else if (what == "grid") {
      spec_.grid.push_back(expression());
    } else {
      fail("no such item");
    }
  }

  void block() {
    const int64_t threads = integer();
    if (threads < 1 || threads > 1024) fail("wanted 1 to 1024 threads");
    spec_.threads = static_cast<int>(threads);
    spec_.shared_bytes = integer();
  }

  void cluster() {
    const int64_t blocks = integer();
    if (blocks < 1 || blocks > 16) fail("wanted 1 to 16 blocks");
    spec_.cluster = static_cast<int>(blocks);
  }

  void tensor_map() {
    LaunchSpec::TensorMap m{};
    const int64_t arg = integer(), swizzle = integer();
    if (arg < 0 || static_cast<size_t>(arg) >= spec_.args.size()) fail("no such argument");
    m.arg = static_cast<size_t>(arg);
    m.swizzle = static_cast<int>(swizzle);
    while (!(fields_ >> std::ws).eof()) m.box.push_back(static_cast<int>(integer()));
    spec_.tensor_maps.push_back(std::move(m));
  }

  void argument() {
    LaunchSpec::Arg a{};
    a.name = word();
    const std::string type = word(), use = word();
    std::optional<DType> dtype = dtype_named(type);
    if (!dtype) fail(fmt::format("no dtype '{}'", type));
    if (use != "r" && use != "w" && use != "rw" && use != "zero") fail("wanted r, w, rw or zero");
    a.dtype = *dtype;
    a.read = use != "w";
    a.written = use != "r";
    a.workspace = use == "zero";
    spec_.args.push_back(std::move(a));
  }

  std::istringstream lines_, fields_;
  std::string line_;
  int number_ = 0;
  LaunchSpec spec_;
};

}  // namespace

std::string to_string(const LaunchSpec& s) {
  auto text = [&](const Expr& e) {
    return tw::to_string(e, [&](Symbol symbol) { return s.dims.at(symbol.id).name; });
  };
  std::string out = fmt::format("{}\nentry {}\nscratch {}\n", kHeader, s.entry, s.scratch_bytes);
  if (s.threads > 0) out += fmt::format("block {} {}\n", s.threads, s.shared_bytes);
  if (s.cluster > 1) out += fmt::format("cluster {}\n", s.cluster);
  if (s.in_order) out += "in_order\n";
  if (s.messages) out += "messages\n";
  if (s.early) out += "early\n";
  for (const auto& d : s.dims) out += fmt::format("dim {} {}\n", d.name, d.multiple_of);
  for (const auto& a : s.args) {
    const char* use = a.workspace ? "zero" : a.written ? a.read ? "rw" : "w" : "r";
    out += fmt::format("arg {} {} {}\n", a.name, name(a.dtype), use);
    for (const Expr& e : a.dims) out += fmt::format("extent {}\n", text(e));
  }
  for (const auto& m : s.tensor_maps)
    out += fmt::format("map {} {} {}\n", m.arg, m.swizzle, fmt::join(m.box, " "));
  for (const Expr& e : s.grid) out += fmt::format("grid {}\n", text(e));
  return out + "end\n";
}

LaunchSpec parse_launch_spec(const std::string& text) { return Reader(text).read(); }

}  // namespace tw
