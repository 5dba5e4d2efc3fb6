#include "tw/emit/cpu/pieces.h"

#include <algorithm>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/emit/cpu/contract_operand.h"
#include "tw/emit/cpu/contract_thin.h"

namespace tw::cpu {
namespace {

const char* const kBlockText = R"(// n in equal blocks of whole units, at most `most` each.
TW_INLINE i64 tw_block(i64 n, i64 most, i64 unit) {
  const i64 blocks = max(cdiv(n, most), 1);
  return max(cdiv(cdiv(n, blocks), unit), 1) * unit;
})";

// Costs in products of two numbers: of packing one element, and of waking another thread. Measured
// with AVX-512 (190 GFLOP/s, 1.5 us); where products are slower both are smaller, and a second
// thread pays earlier than this says.
const char* const kCutText = R"(
// An axis of a product: its extent, the unit and the most (whole units) of a piece, and where its
// length goes.
struct TwCutAxis {
  i64 extent, unit, most;
  i64* piece;  // null: the axis is not cut
};

TW_INLINE i64 tw_piece(const TwCutAxis& x, i64 pieces) {
  if (!x.piece) return x.extent;
  return tw_block(x.extent, min(max(cdiv(x.extent, pieces), 1), x.most), x.unit);
}

// Sets the lengths of pieces for which the busiest thread does least: products, 30 for each element
// that a piece packs, 8 for each of B that few rows wait for, and 150000 once for waking threads.
// `others` pieces lie along other axes.
static __attribute__((noinline)) void tw_cut(
    const TwCutAxis& rows, const TwCutAxis& cols, i64 depth, i64 others, i64 threads) {
  if (threads <= 1 && rows.extent <= rows.most && cols.extent <= cols.most) {
    if (rows.piece) *rows.piece = rows.most;
    if (cols.piece) *cols.piece = cols.most;
    return;
  }
  f64 least = -1;
  const auto consider = [&](i64 r, i64 c) {
    const i64 m = tw_piece(rows, r), n = tw_piece(cols, c);
    const i64 all = others * cdiv(rows.extent, m) * cdiv(cols.extent, n);
    const i64 packed = (m * depth <= $a ? 0 : m) + (n * depth <= $b ? 0 : n);
    const i64 work = rows.extent <= $thin ? 8 * n : m * n + 30 * packed;
    const f64 cost = (f64)cdiv(all, threads) * depth * work +
                     (all > 1 && threads > 1 ? 1.5e5 : 0);
    if (least >= 0 && cost >= least) return;
    least = cost;
    if (rows.piece) *rows.piece = m;
    if (cols.piece) *cols.piece = n;
  };
  consider(1, 1);
  if (rows.extent <= rows.most && cols.extent <= cols.most &&
      least * (f64)(threads - 1) <= 1.5e5 * (f64)threads)
    return;  // not even equal parts would pay
  const i64 wanted = cdiv(threads, max(others, 1));
  for (i64 all = wanted; wanted > 1 && all <= 2 * wanted; all += wanted)
    for (i64 r = 1; r <= all; ++r) consider(r, cdiv(all, r));
})";

/// The contraction that is all of the program's body.
const Op& contraction_of(const Program& p) {
  const Region* r = &p.body;
  while (r->ops.size() == 1 && r->ops[0].code == Opcode::par) r = &r->ops[0].regions[0];
  if (r->ops.size() != 1 || r->ops[0].code != Opcode::contract)
    throw InternalError("dims are chosen for what is no contraction");
  return r->ops[0];
}

/// The chosen dim that an expression mentions; there is one at most.
std::optional<size_t> chosen_in(const Program& p, const Expr& e) {
  std::optional<size_t> found;
  for_each_symbol(e, [&](Symbol s) {
    if (s.kind == SymbolKind::dim && p.dims[s.id].chosen()) found = s.id;
  });
  return found;
}

/// One axis of the contraction, and the dim that is the length of its pieces.
struct Cut {
  std::string extent, piece;
  int unit = 1;
  int64_t most = 1;
};

class Chooser {
 public:
  Chooser(Context& c, const Op& op)
      : c_(c),
        op_(op),
        attr_(op.as<ContractAttr>()),
        sum_(c.program.type(op.regions[2].args[0])),
        shape_(choose_contract_shape(c.machine, c.mapping, sum_.dtype)) {}

  void emit(Writer& out) {
    const Cut rows = cut(attr_.rows, 0, "pm", shape_.rows);
    const Cut cols = cut(attr_.cols, 1, "pn", shape_.cols());
    out.line("// Cuts rows and columns into pieces, each the work of an instance.");
    out.open("static void choose_pieces(i64* dims, i64 threads) {");
    const std::vector<Dim>& dims = c_.program.dims;
    for (size_t k = 0; k < dims.size(); ++k) {
      if (!dims[k].chosen()) out.line(fmt::format("const i64 {} = dims[{}];", dims[k].name, k));
    }
    const auto axis = [](const Cut& x) {
      return fmt::format("{{{}, {}, {}, {}}}", x.extent, x.unit, x.most, x.piece);
    };
    out.line(fmt::format("const TwCutAxis rows = {}, cols = {};", axis(rows), axis(cols)));
    out.line(fmt::format("tw_cut(rows, cols, {}, {}, threads);", depth(), others()));
    for (const std::string& line : overruled_) out.line(line);
    out.close();
    use_block(c_.prelude);
    const int64_t size = bytes(shape_.type);
    const ContractOperand b(c_, op_.regions[1], 1, shape_);
    const int thin = b.plain() && b.unit_kept() ? kThinRows : 0;
    c_.prelude.add("cut", fill(kCutText, {{"a", std::to_string(shape_.a_in_place_bytes / size)},
                                          {"b", std::to_string(shape_.b_in_place_bytes / size)},
                                          {"thin", std::to_string(thin)}}));
  }

 private:
  Cut cut(const Expr& extent, int side, const std::string& knob, int unit) {
    const std::optional<size_t> dim = chosen_in(c_.program, extent);
    if (!dim) return {std::to_string(sum_.shape[side]), "nullptr", unit, sum_.shape[side]};
    const int64_t chosen = c_.mapping.get(knob, 0);
    if (chosen > 0) overruled_.push_back(fmt::format("dims[{}] = {};", *dim, chosen));
    return {c_.text(whole_extent(c_.program, extent)), fmt::format("&dims[{}]", *dim), unit,
            c_.program.dims[*dim].at_most / unit * unit};
  }

  /// Of the first instance, where it depends on the instance.
  std::string depth() const {
    return c_.text(substitute(attr_.depth, [](Symbol s) {
      return s.kind == SymbolKind::pid ? std::optional(Expr(0)) : std::nullopt;
    }));
  }

  /// Instances along axes that are not cut.
  std::string others() const {
    std::string product;
    for (const Expr& extent : c_.program.grid) {
      if (chosen_in(c_.program, extent)) continue;
      product += fmt::format("{}max({}, 0)", product.empty() ? "" : " * ", c_.text(extent));
    }
    return product.empty() ? "1" : product;
  }

  Context& c_;
  const Op& op_;
  const ContractAttr& attr_;
  const Type& sum_;
  const ContractShape shape_;
  std::vector<std::string> overruled_;
};

}  // namespace

bool chooses(const Program& p) { return given_dims(p) < p.dims.size(); }

Expr most_pieces(const Program& p, const Expr& extent) {
  const Expr e = substitute(extent, [&](Symbol s) {
    return p.dims[s.id].chosen() ? std::optional(Expr(1)) : std::nullopt;
  });
  return simplify(e, facts_of(p));
}

Expr whole_extent(const Program& p, const Expr& extent) {
  const std::optional<size_t> dim = chosen_in(p, extent);
  if (!dim) return extent;
  for (const Expr& axis : p.grid) {
    if (chosen_in(p, axis) == dim) return most_pieces(p, axis);
  }
  throw InternalError("a piece of an axis that the grid lacks");
}

void emit_choose(Context& c, Writer& out) { Chooser(c, contraction_of(c.program)).emit(out); }

void choose_dims(const Program& p, const std::string& given, const std::string& threads,
                 Writer& out) {
  std::string values;
  for (size_t k = 0; k < p.dims.size(); ++k) {
    values += k ? ", " : "";
    values += p.dims[k].chosen() ? "1" : fmt::format("{}[{}]", given, k);
  }
  out.line(fmt::format("i64 dims[] = {{{}}};", values));
  out.line(fmt::format("choose_pieces(dims, {});", threads));
}

void use_block(Prelude& prelude) { prelude.add("block", kBlockText); }

}  // namespace tw::cpu
