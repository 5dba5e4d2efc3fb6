#include "tw/emit/cuda/placement.h"

#include <algorithm>
#include <bit>

#include "tw/base/round.h"
#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cuda/scan.h"
#include "tw/ir/infer.h"

namespace tw::cuda {

using layout::ThreadValue;

namespace {

/// Elements of a tile per thread that blocks are sized for, more where threads exchange what they
/// have, and the most and fewest threads.
constexpr int64_t kElements = 16, kExchanging = 32, kFewThreads = 32, kUsualThreads = 512,
                  kMostThreads = 1024;
/// Of what is loaded together, a word of each element as many as said; more of narrow elements. Of
/// two words or more a thread that exchanges nothing has one run of 16 bytes each.
constexpr int64_t kWord = 4, kRun = 4;
/// Threads of a block that is one of a cluster, where the cluster may have as many blocks.
constexpr int64_t kClusterThreads = 256;
/// Threads for products.
constexpr int64_t kSumThreads = 256;
/// Sums of matrix instructions per thread; rows of 16 go to a warp when a warp has whole rows.
constexpr int64_t kSums = 48, kRowSums = 96;
/// Times that a tile is larger than a slice that is small.
constexpr int64_t kSmallPart = 8;

/// Threads in a grid, each with runs of rows and of columns: rows and columns of a product are then
/// read by several threads at once.
ThreadValue product_layout(const Extents& shape, int64_t threads, int64_t rows, int64_t columns) {
  ThreadValue across = layout::blocked({shape[1]}, std::min<int64_t>(16, threads), 0, columns);
  ThreadValue down = layout::blocked({shape[0]}, threads / across.thread_count(), 0, rows);
  ThreadValue l{shape, {}, {}};
  const auto add = [](std::vector<ThreadValue::Mode>& to,
                      const std::vector<ThreadValue::Mode>& from, int axis) {
    for (ThreadValue::Mode m : from) {
      if (m.axis >= 0) m.axis = axis;
      to.push_back(m);
    }
  };
  add(l.threads, across.threads, 1);
  add(l.threads, down.threads, 0);
  add(l.values, across.values, 1);
  add(l.values, down.values, 0);
  return layout::renamed(l, {0, 1}, shape);
}

/// Whether every extent of `part` is that of `whole` or 1.
bool goes_with(const Extents& part, const Extents& whole) {
  if (part.size() != whole.size() || part == whole) return false;
  for (size_t a = 0; a < part.size(); ++a) {
    if (part[a] != whole[a] && part[a] != 1) return false;
  }
  return true;
}

/// The axis of `other` that each axis of `shape` is, -1 where it has an extent of 1.
std::vector<int> axes_in(const Extents& other, const Extents& shape) {
  std::vector<int> of;
  int next = 0;
  for (const int64_t extent : shape) {
    if (extent == 1) {
      of.push_back(-1);
      continue;
    }
    while (other[next] == 1) ++next;
    of.push_back(next++);
  }
  return of;
}

Extents without_ones(Extents shape) {
  std::erase(shape, 1);
  return shape;
}

/// Bytes that one element takes in memory; of packed ones, that it is read with.
int64_t memory_bytes(DType t) { return is_packed(t) ? 1 : bytes(t); }

bool moves_elements(Opcode code) {
  return code == Opcode::reshape || code == Opcode::transpose || code == Opcode::slice ||
         code == Opcode::broadcast;
}

}  // namespace

Placement::Placement(const cpu::Context& c, const Mapping& mapping, int most_cluster, bool panels)
    : c_(c), operands_(c), panels_(panels) {
  visit(c.program.body, 0);
  choose_threads(mapping.get("warps", 0));
  choose_cluster(mapping, most_cluster);
}

/// Whether the operand is loaded from where neighbours lie along that axis of it.
bool Placement::loads_along(const Op& dot, size_t which, size_t axis) const {
  const Operand o = operand_of(c_, dot, which);
  const Op* op = c_.def[o.base];
  if (op == nullptr || op->code != Opcode::load) return false;
  const View& view = op->as<ViewAttr>().view;
  const int unit = c_.specialisation.params[view.param].unit_axis;
  return view.axes.size() == 2 && view.axes[o.axis(axis)] == unit;
}

void Placement::note_dot(const Op& op) {
  Shape& s = shapes_[c_.program.type(op.out[0]).shape];
  const bool matrix = panels_ && unit_of(c_.program, op) == DotUnit::matrix;
  s.matrix = matrix && (s.matrix || !s.product);
  s.product = true;
  // Neighbours along k are read at once: lanes side by side then read lines side by side.
  if (loads_along(op, 0, 0)) s.row_run = 4;
  if (loads_along(op, 1, 0)) s.column_run = 1;
  const Op* left = c_.def[op.in[0]];
  const auto found = shapes_.find(c_.program.type(op.in[0]).shape);
  const bool loaded = left != nullptr && left->code == Opcode::load;
  if (matrix && !loaded && found != shapes_.end() && found->second.matrix) rows_only_ = true;
}

bool Placement::is_product(const Extents& shape) const {
  const auto found = shapes_.find(shape);
  return found != shapes_.end() && found->second.product;
}

DotUnit Placement::unit(const Op& dot) const {
  const Extents& shape = c_.program.type(dot.out[0]).shape;
  const DotUnit wanted = unit_of(c_.program, dot);
  if (!panels_ || !in_registers(shape)) return DotUnit::plain;
  if (wanted == DotUnit::matrix &&
      layout_of(shape) != matrix_layout(shape, threads_ / 32, rows_only_))
    return c_.program.type(dot.in[0]).dtype == f32 ? DotUnit::multiply_add : DotUnit::plain;
  return wanted;
}

void Placement::note(ValueId v, int depth, bool anywhere) {
  Use& u = uses_[v];
  ++u.count;
  const auto it = depth_.find(v);
  u.deeper = u.deeper || (it != depth_.end() && it->second < depth);
  u.anywhere = u.anywhere || anywhere;
}

void Placement::note_view(const Op& op, ValueId v) {
  const View* view = view_of(op);
  Shape& s = shapes_[c_.program.type(v).shape];
  if (view == nullptr) return;
  const Param& p = c_.program.params[view->param];
  const int64_t bytes = memory_bytes(p.dtype);
  const int unit = c_.specialisation.params[view->param].unit_axis;
  const auto axis = std::ranges::find(view->axes, unit);
  const size_t tile_axis =
      axis == view->axes.end() ? view->axes.size() - 1 : size_t(axis - view->axes.begin());
  if (view->axes.empty() || (s.bytes != 0 && s.bytes <= bytes)) return;
  s.bytes = bytes;
  s.vector_axis = tile_axis;
}

/// What one stretch of the program loads is under way at once.
void Placement::note_loads(const Region& r) {
  std::map<Extents, int64_t> all;
  for (const Op& op : r.ops) {
    if (op.code != Opcode::load) continue;
    all[c_.program.type(op.out[0]).shape] +=
        memory_bytes(c_.program.params[view_of(op)->param].dtype);
  }
  for (const auto& [shape, bytes] : all) {
    int64_t& loaded = shapes_[shape].loaded;
    loaded = std::max(loaded, bytes);
  }
}

void Placement::visit(const Region& r, int depth) {
  note_loads(r);
  for (const ValueId v : r.args) depth_[v] = depth;
  for (const Op& op : r.ops) {
    const bool anywhere = op.code == Opcode::dot || op.code == Opcode::top_k;
    for (const ValueId v : op.in) note(v, depth, anywhere);
    for (const ValueId v : op.out) {
      depth_[v] = depth;
      Shape& s = shapes_[c_.program.type(v).shape];
      s.held = s.held || !in_panel_only(v);
    }
    if (op.code == Opcode::load) note_view(op, op.out[0]);
    if (op.code == Opcode::store) note_view(op, op.in[0]);
    if (op.code == Opcode::dot) note_dot(op);
    turns_ = turns_ || op.code == Opcode::transpose;
    if (op.code == Opcode::reshape)
      note_reshape(c_.program.type(op.in[0]).shape, c_.program.type(op.out[0]).shape);
    if (op.code == Opcode::scan) {
      shapes_[c_.program.type(op.in[0]).shape].scanned = op.as<ScanAttr>().fold.axis;
    }
    if (is_loop(op.code)) {
      int64_t all = 0;
      for (const ValueId v : op.out) all += count(c_.program.type(v).shape);
      carried_ = std::max(carried_, all);
    }
    folds_ = folds_ ||
             (is_fold(op.code) &&
              fold_of(op).axis + 1 == static_cast<int>(c_.program.type(op.in[0]).shape.size()));
    if (is_fold(op.code)) continue;
    const bool loop = is_loop(op.code);
    for (const Region& inner : op.regions) visit(inner, depth + (loop ? 1 : 0));
  }
  for (const ValueId v : r.yields) note(v, depth, false);
}

int64_t Placement::most_held() const {
  int64_t most = 1;
  for (const auto& [shape, s] : shapes_) {
    if (s.held) most = std::max(most, count(shape));
  }
  return most;
}

/// Rows that are much for one block are spread over several, which fold together.
void Placement::choose_cluster(const Mapping& mapping, int most) {
  const bool others = std::ranges::any_of(
      shapes_, [](const auto& s) { return s.second.product || s.second.scanned >= 0; });
  const int64_t held = most_held();
  if (!folds_ || others || held / (most * kUsualThreads) > kMostRegisters) return;
  int64_t blocks = 1, threads = threads_;
  if (held > kUsualThreads * kExchanging && most > 1) {
    const auto all = static_cast<int64_t>(std::bit_ceil(uint64_t(ceil_div(held, kExchanging))));
    blocks = std::min<int64_t>(most, all / kClusterThreads);
    threads = all / blocks;
  }
  blocks = std::min<int64_t>(most, mapping.get("cluster", blocks));
  if (blocks == 1) return;
  cluster_ = static_cast<int>(blocks);
  threads_ = static_cast<int>(32 * mapping.get("warps", threads / 32) * blocks);
}

/// Whether threads fold what they have; tiles that a loop carries take registers of their own.
bool Placement::keeps_rows(int64_t most) const { return folds_ && carried_ < 2 * most; }

/// Elements of the largest tile that a thread should have.
int64_t Placement::elements_of_thread(int64_t most) const {
  // Of rows and of what belongs to their columns, as long as one row, rows have more axes.
  size_t axes = 0;
  int64_t loaded = 0;
  for (const auto& [shape, s] : shapes_) {
    if (count(shape) != most || s.loaded == 0 || shape.size() < axes) continue;
    loaded = shape.size() > axes ? s.loaded : std::max(loaded, s.loaded);
    axes = shape.size();
  }
  if (keeps_rows(most)) return kExchanging * kWord / std::max(loaded, kWord);
  if (turns_ || folds_ || carried_ > 0 || loaded == 0) return kElements;
  return loaded >= 2 * kWord ? kRun : kElements * kWord / std::max(loaded, kWord / 2);
}

void Placement::choose_threads(int64_t warps) {
  const int64_t most = most_held();
  int64_t sums = 0;
  for (const auto& [shape, s] : shapes_) {
    if (s.matrix) sums = std::max(sums, count(shape));
    if (s.matrix && rows_only_) sums = std::max(sums, shape[0] * kRowSums);
  }
  const auto threads = [](int64_t elements, int64_t each) {
    return static_cast<int64_t>(std::bit_ceil(uint64_t((elements + each - 1) / each)));
  };
  const int64_t each = elements_of_thread(most);
  int64_t n = std::clamp(threads(most, each), kFewThreads, kUsualThreads);
  if (most > n * each * (keeps_rows(most) ? 1 : 2)) n = kMostThreads;
  if (sums > 0) n = std::clamp(threads(sums, kSums), kFewThreads, kSumThreads);
  while (n < kMostThreads && most / n > (sums > 0 ? kMostSums : kMostRegisters)) n *= 2;
  if (warps > 0) n = 32 * warps;
  threads_ = static_cast<int>(n);
}

int Placement::threads_wanted() const {
  if (multiplies()) return 1;
  const bool narrow = std::ranges::any_of(
      shapes_, [](const auto& s) { return s.second.bytes == 1 || s.second.bytes == 2; });
  return narrow && !folds_ ? 1536 : 1024;
}

const ThreadValue& Placement::layout_of(const Extents& shape) const {
  const auto it = layouts_.find(shape);
  if (it != layouts_.end()) return it->second;
  return layouts_.emplace(shape, choose(shape)).first->second;
}

void Placement::note_reshape(const Extents& from, const Extents& to) {
  if (from == to || without_ones(from) != without_ones(to)) return;
  alike_[from].insert(to);
  alike_[to].insert(from);
}

/// The largest tile that a tile of the shape goes with.
const Extents* Placement::whole_of(const Extents& shape) const {
  const Extents* whole = nullptr;
  for (const auto& [other, s] : shapes_) {
    if (goes_with(shape, other) && (whole == nullptr || count(*whole) < count(other)))
      whole = &other;
  }
  return whole;
}

ThreadValue Placement::choose(const Extents& shape) const {
  if (const Extents* whole = whole_of(shape)) {
    ThreadValue l = layout_of(*whole);
    for (size_t a = 0; a < shape.size(); ++a) {
      if (shape[a] != (*whole)[a]) l = layout::slice(l, a);
    }
    return l;
  }
  const auto alike = alike_.find(shape);
  if (alike == alike_.end()) return choose_alone(shape);
  // The one of them that has a larger tile, else the first, has the layout of all.
  const Extents* own = &shape;
  int64_t most = 0;
  for (const Extents& other : alike->second) {
    const Extents* whole = whole_of(other);
    if (whole == nullptr ? most == 0 && other < *own : most < count(*whole)) own = &other;
    if (whole != nullptr) most = std::max(most, count(*whole));
  }
  if (own == &shape) return choose_alone(shape);
  return layout::renamed(layout_of(*own), axes_in(*own, shape), shape);
}

ThreadValue Placement::choose_alone(const Extents& shape) const {
  const auto known = shapes_.find(shape);
  const Shape s = known == shapes_.end() ? Shape{} : known->second;
  if (s.matrix) return matrix_layout(shape, threads_ / 32, rows_only_);
  if (s.product && shape.size() == 2)
    return product_layout(shape, threads_, s.row_run, s.column_run);
  const int64_t share = std::max<int64_t>(1, count(shape) / threads_);
  const int64_t vector = std::min(share, s.bytes == 0 ? 4 : 16 / s.bytes);
  const size_t last = shape.empty() ? 0 : shape.size() - 1;
  ThreadValue l = layout::blocked(shape, threads_, s.bytes == 0 ? last : s.vector_axis, vector);
  return s.scanned < 0 ? l : with_whole_warps(std::move(l), s.scanned);
}

/// Constants and what a fold of few steps makes of kept tiles cost less than keeping them.
bool Placement::cheap(ValueId v) const {
  const Op* op = c_.def[v];
  if (op == nullptr || kept(*op)) return true;
  if (op->code == Opcode::full || op->code == Opcode::iota || op->code == Opcode::index)
    return true;
  if (!moves_elements(op->code)) return false;
  return cheap(op->in[0]);
}

/// A slice of a tile in registers that is kept for itself, so that the tile need not be.
bool Placement::small_part(const Op& slice) const {
  const Op* whole = c_.def[slice.in[0]];
  const Extents& shape = c_.program.type(slice.in[0]).shape;
  return whole != nullptr && kept(*whole) && in_registers(shape) &&
         count(c_.program.type(slice.out[0]).shape) * kSmallPart <= count(shape);
}

/// Sums of numbers of elements, as coordinates are: part of addresses where they are used.
bool Placement::counts(ValueId v) const {
  const Op* op = c_.def[v];
  if (op == nullptr || !is_int(c_.program.type(v).dtype)) return false;
  const auto among = [op](std::initializer_list<Opcode> codes) {
    return std::ranges::find(codes, op->code) != codes.end();
  };
  if (among({Opcode::iota, Opcode::index, Opcode::full})) return true;
  return among({Opcode::add, Opcode::sub, Opcode::mul, Opcode::broadcast}) &&
         std::ranges::all_of(op->in, [&](ValueId x) { return counts(x); });
}

bool Placement::kept(const Op& op) const {
  if (op.out.empty()) return false;
  if (!cpu::is_expression(c_.program, op)) return true;
  const ValueId v = op.out[0];
  if (op.code == Opcode::load || op.code == Opcode::gather) {
    return effect(c_.program, op) != Effect::pure || in_registers(c_.program.type(v).shape);
  }
  const auto it = uses_.find(v);
  if (op.code == Opcode::full || counts(v) || it == uses_.end()) return false;
  const Use& u = it->second;
  if (op.code == Opcode::slice && small_part(op)) return true;
  if (u.count < 2 && !u.deeper && !u.anywhere) return false;
  if (moves_elements(op.code)) return !cheap(op.in[0]) && u.anywhere;
  return true;
}

}  // namespace tw::cuda
