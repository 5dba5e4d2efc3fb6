#include "tests/support/random_program.h"

#include <algorithm>
#include <set>

#include "tests/support/random_program_writer.h"

namespace tw::test {

namespace {

/// A dim of the program: its value in this run and how it is cut into tiles.
struct Axis {
  int dim = -1;
  int64_t value = 1, block = 1;
  int grid_axis = -1;
};

class Maker {
 public:
  explicit Maker(uint64_t seed) : w_(seed), seed_(seed) {
    w_.p.name = "random";
    w_.special_free = w_.r.percent(50);
  }

  RandomProgram make() {
    make_dims();
    make_params();
    start_pool();
    write_body();
    w_.p.body = std::move(w_.body());
    drop_dead(w_.p);
    return finished();
  }

 private:
  Expr dim(const Axis& a) const { return Expr::symbol(SymbolKind::dim, a.dim); }

  Axis new_axis(const std::string& name, int64_t block, int64_t value, int64_t multiple_of) {
    Axis a{static_cast<int>(w_.p.dims.size()), value, block, -1};
    w_.p.dims.push_back({name, multiple_of});
    dims_.emplace_back(name, value);
    return a;
  }

  Axis random_axis(const std::string& name, const std::vector<int64_t>& blocks, int most_tiles) {
    Random& r = w_.r;
    const int64_t block = r.of(blocks);
    static const std::vector<int64_t> values{1, 3, 5, 7, 17, 20, 31, 33, 48, 64, 80, 100};
    int64_t value = std::min(r.of(values), block * most_tiles);
    if (r.percent(15)) value = block * r.between(1, most_tiles);
    if (r.percent(3)) value = 0;
    const bool promise = value % block == 0 && r.percent(40);
    return new_axis(name, block, value, promise ? block : 1);
  }

  void distribute(Axis& a) {
    a.grid_axis = static_cast<int>(w_.p.grid.size());
    w_.p.grid.push_back(cdiv(dim(a), a.block));
  }

  void make_dims() {
    m_ = random_axis("M", {1, 2, 3, 4, 5, 7, 8, 16, 17, 24}, 4);
    n_ = random_axis("N", {1, 3, 5, 8, 15, 16, 17, 24, 32, 48, 80}, 3);
    k_ = random_axis("K", {1, 3, 4, 7, 8, 16}, 5);
    h_ = new_axis("H", 1, w_.r.between(1, 3), 1);
    const uint64_t kind = w_.r.below(10);
    if (kind >= 8) distribute(h_);
    if (kind >= 1) distribute(m_);
    if (kind >= 5) distribute(n_);
    if (w_.p.grid.empty()) w_.p.grid.push_back(1);
    if (w_.r.percent(25)) new_axis("S", 1, w_.r.between(0, 40), 1);
  }

  void add_param(const std::string& name, ParamKind kind, DType t, const std::vector<Axis>& axes) {
    Param p{name, kind, t, {}, {}};
    std::vector<Cut> cuts;
    TensorSpec spec{t, {}, Layout::contiguous, Fill::normal, 0, w_.r.next()};
    for (const Axis& a : axes) {
      p.dims.push_back(a.dim >= 0 ? dim(a) : Expr(a.value));
      cuts.push_back({p.dims.back(), a.block, a.grid_axis, a.dim});
      spec.dims.push_back(a.value);
    }
    choose_data(spec, kind);
    w_.p.params.push_back(p);
    w_.cuts.push_back(cuts);
    if (kind != ParamKind::scratch) tensors_.push_back(spec);
  }

  void choose_data(TensorSpec& s, ParamKind kind) {
    Random& r = w_.r;
    static const std::vector<Layout> in{Layout::contiguous, Layout::contiguous, Layout::transposed,
                                        Layout::gaps,       Layout::reversed,   Layout::repeated,
                                        Layout::shifted};
    s.layout = r.of(in);
    if (kind != ParamKind::in && s.layout == Layout::repeated) s.layout = Layout::contiguous;
    static const std::vector<Fill> fills{Fill::small_integers, Fill::normal, Fill::normal,
                                         Fill::positive,       Fill::wide,   Fill::bits};
    s.fill = r.of(fills);
    static const std::vector<int> rates{0, 8, 40, 150};
    if (!w_.special_free) s.special_one_in = r.of(rates);
  }

  std::vector<Axis> some_axes() {
    const Axis fixed{-1, w_.r.between(1, 19), w_.r.between(1, 9), -1};
    const std::vector<std::vector<Axis>> shapes{
        {m_, k_}, {k_, n_}, {k_, m_}, {n_, k_},    {m_, n_},     {m_, n_},     {n_},
        {m_},     {n_, m_}, {k_},     {fixed, n_}, {h_, m_, n_}, {h_, k_, n_}, {m_, h_, k_}};
    return w_.r.of(shapes);
  }

  std::vector<Axis> some_output_axes() {
    const Axis fixed{-1, w_.r.between(1, 19), w_.r.between(1, 9), -1};
    const std::vector<std::vector<Axis>> shapes{{m_, n_}, {m_, n_}, {n_, m_},     {m_},
                                                {m_, n_}, {n_},     {h_, m_, n_}, {m_, fixed}};
    return w_.r.of(shapes);
  }

  void make_params() {
    Random& r = w_.r;
    for (int64_t i = 0, n = r.between(1, 3); i < n; ++i)
      add_param("in" + std::to_string(i), ParamKind::in, w_.some_dtype(), some_axes());
    // M, N, K and H must be the extent of some tensor each, or be given by name: by name here.
    for (int64_t i = 0, n = r.between(1, 3); i < n; ++i) {
      const ParamKind kind = r.percent(30) ? ParamKind::inout : ParamKind::out;
      add_param("out" + std::to_string(i), kind, w_.some_dtype(), some_output_axes());
    }
    if (!r.percent(20)) return;
    std::vector<Axis> fixed;
    for (int64_t i = r.between(1, 2); i > 0; --i)
      fixed.push_back({-1, r.between(1, 40), r.between(1, 9), -1});
    add_param("own", ParamKind::scratch, w_.some_dtype(), fixed);
  }

  void start_pool() {
    Random& r = w_.r;
    const std::vector<Extents> shapes{{m_.block, n_.block}, {m_.block, n_.block}, {m_.block, 1},
                                      {1, n_.block},        {n_.block},           {m_.block}};
    w_.remember(w_.load_shape(shapes[0]));
    for (int64_t i = r.between(0, 2); i > 0; --i) w_.remember(w_.load_shape(r.of(shapes)));
    if (r.percent(20)) w_.remember(w_.constant({f32, {}}, 1.5));
  }

  void write_body() {
    Random& r = w_.r;
    const bool all_four = r.percent(47);
    std::vector<int> must;
    if (all_four) must = {0, 1, 2, 3};
    for (size_t k = must.size(); k > 1; --k) std::swap(must[k - 1], must[r.below(k)]);
    for (int64_t i = r.between(2, 7); i > 0; --i) w_.fragment(0);
    for (int which : must) {
      if (which == 0) w_.loop_fragment(1);
      if (which == 1) w_.if_fragment(1);
      if (which == 2) w_.dot_fragment();
      if (which == 3) w_.reduce_fragment();
      if (r.percent(40)) w_.elementwise();
    }
    if (r.percent(30)) w_.store_fragment();
    for (int64_t i = r.between(0, 3); i > 0; --i) w_.fragment(1);
    for (size_t i = 0; i < arguments(w_.p).size(); ++i)
      if (w_.p.params[i].kind != ParamKind::in) w_.store_own(static_cast<int>(i));
    if (r.percent(50)) w_.store_fragment();
  }

  RandomProgram finished() {
    RandomProgram r;
    r.seed = seed_;
    r.program = std::move(w_.p);
    r.dims = dims_;
    r.tensors = tensors_;
    r.special_free = w_.special_free;
    return r;
  }

  Writer w_;
  uint64_t seed_;
  Axis m_, n_, k_, h_;
  std::vector<std::pair<std::string, int64_t>> dims_;
  std::vector<TensorSpec> tensors_;
};

/// Whether the op, or one inside it, stores.
bool writes(const Op& op) {
  const Effect effect = info(op.code).effect;
  if (effect == Effect::write || effect == Effect::host) return true;
  return std::any_of(op.regions.begin(), op.regions.end(), [](const Region& r) {
    return std::any_of(r.ops.begin(), r.ops.end(), writes);
  });
}

/// Keeps of a region what stores, and what that and `live` use; adds to `live`.
void drop_dead(Region& r, std::set<ValueId>& live) {
  for (ValueId v : r.yields) live.insert(v);
  std::vector<Op> kept;
  for (size_t i = r.ops.size(); i-- > 0;) {
    Op& op = r.ops[i];
    const bool used =
        std::any_of(op.out.begin(), op.out.end(), [&](ValueId v) { return live.count(v) > 0; });
    if (!used && !writes(op)) continue;
    for (ValueId v : op.in) live.insert(v);
    for (Region& inner : op.regions) drop_dead(inner, live);
    kept.push_back(std::move(op));
  }
  std::reverse(kept.begin(), kept.end());
  r.ops = std::move(kept);
}

void renumber(Region& r, std::vector<ValueId>& map, std::vector<Value>& values, const Program& p) {
  const auto define = [&](ValueId& v) {
    map[v] = static_cast<ValueId>(values.size());
    values.push_back(p.values[v]);
    v = map[v];
  };
  for (ValueId& v : r.args) define(v);
  for (Op& op : r.ops) {
    for (ValueId& v : op.in) v = map[v];
    for (Region& inner : op.regions) renumber(inner, map, values, p);
    for (ValueId& v : op.out) define(v);
  }
  for (ValueId& v : r.yields) v = map[v];
}

}  // namespace

void drop_dead(Program& p) {
  std::set<ValueId> live;
  drop_dead(p.body, live);
  std::vector<ValueId> map(p.values.size());
  std::vector<Value> values;
  renumber(p.body, map, values, p);
  p.values = std::move(values);
}

RandomProgram random_program(uint64_t seed) { return Maker(seed).make(); }

}  // namespace tw::test
