#include "tw/interp/launch.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <optional>

#include "tw/base/error.h"

namespace tw {

namespace {

using DimValues = std::vector<std::optional<int64_t>>;

std::vector<TensorView> in_declaration_order(const Program& p,
                                             const std::vector<TensorView>& inputs,
                                             const std::vector<TensorView>& outputs) {
  const std::span<const Param> params = given(p);
  const auto want_in = static_cast<size_t>(
      std::ranges::count_if(params, [](const Param& a) { return a.kind == ParamKind::in; }));
  const size_t want_out = params.size() - want_in;
  if (inputs.size() != want_in)
    throw UserError(fmt::format("'{}' takes {} inputs, got {}", p.name, want_in, inputs.size()));
  if (outputs.size() != want_out)
    throw UserError(fmt::format("'{}' takes {} outputs, got {}", p.name, want_out, outputs.size()),
                    "inout tensors count as outputs");
  std::vector<TensorView> all;
  size_t in = 0, out = 0;
  for (const Param& a : params)
    all.push_back(a.kind == ParamKind::in ? inputs[in++] : outputs[out++]);
  return all;
}

void check_type(const Param& a, const TensorView& t) {
  if (t.dtype != a.dtype)
    throw UserError(a.at, fmt::format("tensor '{}' has dtype {}, wanted {}", a.name, name(t.dtype),
                                      name(a.dtype)));
  if (t.dims.size() != a.dims.size())
    throw UserError(a.at, fmt::format("tensor '{}' has rank {}, wanted {}", a.name, t.dims.size(),
                                      a.dims.size()));
  if (t.strides.size() != t.dims.size())
    throw UserError(a.at, fmt::format("tensor '{}' has {} dims but {} strides", a.name,
                                      t.dims.size(), t.strides.size()));
  for (int64_t d : t.dims)
    if (d < 0) throw UserError(a.at, fmt::format("tensor '{}' has the extent {}", a.name, d));
  if (const std::string fault = packing_fault(t); !fault.empty())
    throw UserError(a.at, fmt::format("tensor '{}' is {}", a.name, fault), "copy() it first");
  if (t.data == nullptr && t.count() > 0)
    throw UserError(a.at, fmt::format("tensor '{}' has no memory", a.name));
}

void bind_dim(const Program& p, DimValues& values, size_t dim, int64_t value,
              const std::string& by) {
  if (values[dim] && *values[dim] != value)
    throw UserError(fmt::format("dim '{}' is {} in {}, but {} elsewhere", p.dims[dim].name, value,
                                by, *values[dim]));
  values[dim] = value;
}

void bind_named(const Program& p, DimValues& values,
                const std::vector<std::pair<std::string, int64_t>>& dims) {
  for (const auto& [key, value] : dims) {
    const std::string& name = key;
    const auto at =
        std::find_if(p.dims.begin(), p.dims.end(), [&](const Dim& d) { return d.name == name; });
    if (at == p.dims.end())
      throw UserError(fmt::format("'{}' has no dim named '{}'", p.name, name));
    bind_dim(p, values, static_cast<size_t>(at - p.dims.begin()), value, "the call");
  }
}

void bind_extents(const Program& p, DimValues& values, const std::vector<TensorView>& tensors) {
  for (size_t i = 0; i < given(p).size(); ++i)
    for (size_t k = 0; k < p.params[i].dims.size(); ++k) {
      const Expr& e = p.params[i].dims[k];
      if (e.kind() == Expr::Kind::symbol)
        bind_dim(p, values, static_cast<size_t>(e.symbol().id), tensors[i].dims[k],
                 fmt::format("tensor '{}'", p.params[i].name));
    }
}

std::vector<int64_t> bound_dims(const Program& p, const DimValues& values) {
  std::vector<int64_t> r;
  for (size_t i = 0; i < p.dims.size(); ++i) {
    const Dim& d = p.dims[i];
    if (!values[i])
      throw UserError(fmt::format("dim '{}' is the extent of no tensor", d.name),
                      "give its value with the call");
    if (*values[i] < 0)
      throw UserError(fmt::format("dim '{}' is {}, wanted at least 0", d.name, *values[i]));
    if (d.multiple_of > 1 && *values[i] % d.multiple_of != 0)
      throw UserError(fmt::format("dim '{}' is {}, but the program promises a multiple of {}",
                                  d.name, *values[i], d.multiple_of));
    r.push_back(*values[i]);
  }
  return r;
}

int64_t value_of(const Launch& l, const Expr& e) {
  return evaluate(e, [&](Symbol s) { return l.dims[static_cast<size_t>(s.id)]; });
}

void check_extents(const Program& p, const Launch& l) {
  for (size_t i = 0; i < given(p).size(); ++i)
    for (size_t k = 0; k < p.params[i].dims.size(); ++k) {
      const int64_t want = value_of(l, p.params[i].dims[k]), got = l.tensors[i].dims[k];
      if (got != want)
        throw UserError(p.params[i].at, fmt::format("tensor '{}' has extent {} along axis {}, "
                                                    "wanted {}",
                                                    p.params[i].name, got, k, want));
    }
}

bool overlap(const TensorView& a, const TensorView& b) {
  const ByteRange x = byte_range(a), y = byte_range(b);
  const auto* p = static_cast<const char*>(a.data);
  const auto* q = static_cast<const char*>(b.data);
  return x.begin < x.end && y.begin < y.end && p + x.begin < q + y.end && q + y.begin < p + x.end;
}

/// Whether two elements may share memory: an axis steps inside the reach of the finer ones.
bool overlaps_itself(const TensorView& t) {
  std::vector<std::pair<int64_t, int64_t>> steps;
  for (size_t k = 0; k < t.dims.size(); ++k)
    if (t.dims[k] > 1) steps.emplace_back(std::abs(t.strides[k]), t.dims[k]);
  std::sort(steps.begin(), steps.end());
  int64_t reach = 0;
  for (const auto& [stride, extent] : steps) {
    if (stride <= reach) return true;
    reach += stride * (extent - 1);
  }
  return false;
}

void check_aliasing(const Program& p, const std::vector<TensorView>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (p.params[i].kind == ParamKind::in || tensors[i].count() == 0) continue;
    if (overlaps_itself(tensors[i]))
      throw UserError(p.params[i].at, fmt::format("output '{}' overlaps itself: {}",
                                                  p.params[i].name, to_string(tensors[i])));
    for (size_t j = 0; j < tensors.size(); ++j)
      if (j != i && overlap(tensors[i], tensors[j]))
        throw UserError(
            p.params[i].at,
            fmt::format("output '{}' overlaps '{}' in memory", p.params[i].name, p.params[j].name),
            "declare one inout tensor to update in place");
  }
}

void add_workspace(const Program& p, Launch& l) {
  for (const Param& a : arguments(p).subspan(given(p).size())) {
    std::vector<int64_t> dims;
    for (const Expr& e : a.dims) dims.push_back(value_of(l, e));
    l.workspace.push_back(host_tensor(a.dtype, dims));
    l.tensors.push_back(l.workspace.back());
    if (const int64_t n = byte_count(a.dtype, dims); n > 0)
      std::memset(l.tensors.back().data, 0, static_cast<size_t>(n));
  }
}

}  // namespace

Launch check_launch(const Program& p, const std::vector<TensorView>& inputs,
                    const std::vector<TensorView>& outputs,
                    const std::vector<std::pair<std::string, int64_t>>& dims) {
  Launch l;
  l.tensors = in_declaration_order(p, inputs, outputs);
  for (size_t i = 0; i < given(p).size(); ++i) check_type(p.params[i], l.tensors[i]);
  DimValues values(p.dims.size());
  bind_named(p, values, dims);
  bind_extents(p, values, l.tensors);
  l.dims = bound_dims(p, values);
  check_indices(p, l.dims);
  check_extents(p, l);
  check_aliasing(p, l.tensors);
  for (const Expr& e : p.grid) l.grid.push_back(std::max<int64_t>(value_of(l, e), 0));
  add_workspace(p, l);
  return l;
}

}  // namespace tw
