// Loads and stores of elements of less than a byte.
#include <fmt/format.h>

#include "tw/emit/cpu/prelude.h"
#include "tw/emit/cpu/writer.h"

namespace tw::cpu {
namespace {

// Strides are whole bytes and the memory is the task's own, so that neighbours in a byte may be
// read and written back.
const char* const kBitsText = R"(// packed elements: memory, and how many lie before
struct TwBits {
  u8* data;
  i64 at;
};
TW_INLINE TwBits operator+(TwBits p, i64 n) { return {p.data, p.at + n}; }
TW_INLINE TwBits operator-(TwBits p, i64 n) { return {p.data, p.at - n}; }
TW_INLINE u8 tw_code(TwBits p, i64 l, int bits) {
  const i64 bit = (p.at + l) * bits;
  const u8* const q = p.data + (bit >> 3);
  const int shift = bit & 7;
  const u32 word = shift + bits > 8 ? q[0] | q[1] << 8 : q[0];
  return word >> shift & ((1 << bits) - 1);
}
TW_INLINE void tw_set_code(TwBits p, i64 l, int bits, u32 code) {
  const i64 bit = (p.at + l) * bits;
  u8* const q = p.data + (bit >> 3);
  const int shift = bit & 7;
  const u32 mask = ((1u << bits) - 1) << shift, word = code << shift;
  q[0] = (q[0] & ~mask) | (word & 0xff);
  if (shift + bits > 8) q[1] = (q[1] & ~(mask >> 8)) | word >> 8;
})";

/// One step that moves halves of a run of codes apart (or together): x | x << by, then a mask.
struct Spread {
  int by;
  const char* apart;     ///< bits that stay when codes move apart
  const char* together;  ///< bits that stay when they move together again
};

/// A byte of codes becomes a word with a code a byte.
struct Whole {
  int64_t bits;
  DType word;
  std::vector<Spread> steps;
};
const Whole kWhole[] = {
    {4, u16, {{4, "0xf0f", "0xff"}}},
    {2, u32, {{12, "0xf000f", "0xff"}, {6, "0x3030303", "0xf000f"}}},
    {1,
     u64,
     {{28, "0xf0000000f", "0xff"},
      {14, "0x3000300030003", "0xf0000000f"},
      {7, "0x101010101010101", "0x3000300030003"}}},
};

const Whole* whole_of(DType t, int lanes) {
  for (const Whole& w : kWhole) {
    if (w.bits == bits(t) && lanes * bits(t) % 8 == 0) return &w;
  }
  return nullptr;
}

/// How many neighbours fill whole bytes, at most 8 of them; 0 when the lanes do not.
int64_t group_of(DType t, int lanes) {
  const int64_t group = lanes % 8 == 0 ? 8 : lanes;
  return group <= 8 && group * bits(t) % 8 == 0 ? group : 0;
}

class PackedText {
 public:
  PackedText(Prelude& prelude, DType t, int lanes) : prelude_(prelude), t_(t), lanes_(lanes) {
    words_ = {{"bits", std::to_string(bits(t))}, {"mask", std::to_string((1 << bits(t)) - 1)}};
    for (const char* w : {"V", "E", "Q", "S", "L", "D"})
      words_.emplace_back(w, std::string("$") + w);
  }

  std::string load() {
    if (lanes_ == 1) {
      return text(
          "TW_INLINE $E tw_load_$Dx$L(TwBits p) {\n"
          "  return tw_unpack_$D(tw_code(p, 0, $bits));\n}");
    }
    const std::string each = "for (int l = 0; l < $L; ++l) v[l] = tw_code(p, l, $bits);";
    return text("TW_INLINE $V tw_load_$Dx$L(TwBits p) {\n  $Q v;\n" + either(apart(), each) +
                "  return tw_unpack_$D(v);\n}");
  }

  std::string store() {
    if (lanes_ == 1) {
      return text(
          "TW_INLINE void tw_store_$Dx$L(TwBits p, $E x) {\n"
          "  tw_set_code(p, 0, $bits, tw_pack_$D(x));\n}");
    }
    const std::string each = "for (int l = 0; l < $L; ++l) tw_set_code(p, l, $bits, v[l]);";
    return text("TW_INLINE void tw_store_$Dx$L(TwBits p, $V x) {\n  const $Q v = tw_pack_$D(x);\n" +
                either(together(), each) + "}");
  }

  /// Other accesses go lane by lane.
  std::string read(const std::string& name, const std::string& stride, bool part) {
    const std::string range =
        part ? "i64 l = max(first, 0); l < min(last, $L)" : "i64 l = 0; l < $L";
    return text(
        "TW_INLINE $V tw_" + name + "_$Dx$L(TwBits p" + (stride.empty() ? "" : ", i64 " + stride) +
        (part ? ", i64 first, i64 last, $S pad) {\n  $Q v = pad - ($Q){};\n" : ") {\n  $Q v;\n") +
        "  for (" + range + "; ++l) v[l] = tw_code(p, l" + (stride.empty() ? "" : " * " + stride) +
        ", $bits);\n  return tw_unpack_$D(v);\n}");
  }

  std::string write(const std::string& name, const std::string& stride) {
    return text("TW_INLINE void tw_" + name + "_$Dx$L(TwBits p" +
                (stride.empty() ? "" : ", i64 " + stride) +
                ", $V x, i64 n) {\n  const $Q v = tw_pack_$D(x);\n"
                "  for (i64 l = 0; l < min(n, $L); ++l) tw_set_code(p, l" +
                (stride.empty() ? "" : " * " + stride) + ", $bits, v[l]);\n}");
  }

 private:
  std::string text(const std::string& pattern) const { return fill(pattern, words_); }

  /// Whole bytes, where the first element starts one, or each lane by itself.
  static std::string either(const std::string& whole, const std::string& each) {
    if (whole.empty()) return "  " + each + "\n";
    return "  const i64 bit = p.at * $bits;\n  if (bit & 7) {\n    " + each +
           "\n  } else {\n    u8* const q = p.data + (bit >> 3);\n" + whole + "  }\n";
  }

  /// Words for the lanes, and the bytes that they come from.
  void declare(const Whole& w) {
    const int n = static_cast<int>(lanes_ * bits(t_) / 8);
    word_ = prelude_.type(w.word, n);
    words_.emplace_back("W", word_);
    words_.emplace_back("one", prelude_.type(w.word));
    words_.emplace_back("bytes", prelude_.type(u8, n));
    words_.emplace_back("at", n > 1 ? prelude_.unaligned(u8, n) : "u8");
    vector_ = n > 1;
  }

  std::string apart() {
    if (const Whole* w = whole_of(t_, lanes_)) {
      declare(*w);
      std::string out = vector_ ? "    $W w = __builtin_convertvector(*(const $at*)q, $W);\n"
                                : "    $W w = *q;\n";
      for (const Spread& s : w->steps)
        out += fmt::format("    w = (w | w << {}) & ($one){};\n", s.by, s.apart);
      return out + (vector_ ? "    v = ($Q)w;\n" : "    v = __builtin_bit_cast($Q, w);\n");
    }
    const int64_t group = group_of(t_, lanes_);
    if (group == 0) return "";
    return fmt::format(
        "    for (int g = 0; g < $L; g += {0}) {{\n      u64 w = 0;\n"
        "      __builtin_memcpy(&w, q + g / {0} * {1}, {1});\n"
        "      for (int l = 0; l < {0}; ++l) v[g + l] = w >> ($bits * l) & $mask;\n    }}\n",
        group, group * bits(t_) / 8);
  }

  std::string together() {
    if (const Whole* w = whole_of(t_, lanes_)) {
      declare(*w);
      std::string out = vector_ ? "    $W w = ($W)v;\n" : "    $W w = __builtin_bit_cast($W, v);\n";
      for (size_t k = w->steps.size(); k-- > 0;)
        out += fmt::format("    w = (w | w >> {}) & ($one){};\n", w->steps[k].by,
                           w->steps[k].together);
      return out +
             (vector_ ? "    *($at*)q = __builtin_convertvector(w, $bytes);\n" : "    *q = w;\n");
    }
    const int64_t group = group_of(t_, lanes_);
    if (group == 0) return "";
    return fmt::format(
        "    for (int g = 0; g < $L; g += {0}) {{\n      u64 w = 0;\n"
        "      for (int l = 0; l < {0}; ++l) w |= (u64)v[g + l] << ($bits * l);\n"
        "      __builtin_memcpy(q + g / {0} * {1}, &w, {1});\n    }}\n",
        group, group * bits(t_) / 8);
  }

  Prelude& prelude_;
  DType t_;
  int lanes_;
  Fill words_;
  std::string word_;
  bool vector_ = false;
};

}  // namespace

std::string pointer_type(Prelude& prelude, DType t, bool written) {
  if (is_packed(t)) {
    prelude.add("TwBits", kBitsText);
    return "TwBits";
  }
  const DType stored = t == b1 ? u8 : register_type(t) == t ? t : unsigned_of_bytes(bytes(t));
  return fmt::format("{}{}*", written ? "" : "const ", prelude.type(stored));
}

std::optional<PreludeFunction> packed_function(Prelude& prelude, const std::string& name, DType t,
                                               int lanes) {
  if (!is_packed(t)) return std::nullopt;
  PackedText text(prelude, t, lanes);
  const auto with = [&](const char* uses, const std::string& body) {
    prelude.add("TwBits", kBitsText);
    return PreludeFunction{name, uses, body, ""};
  };
  if (name == "load") return with("unpack_$D", text.load());
  if (name == "load_part") return with("unpack_$D", text.read(name, "", true));
  if (name == "gather") return with("unpack_$D", text.read(name, "stride", false));
  if (name == "gather_part") return with("unpack_$D", text.read(name, "stride", true));
  if (name == "store") return with("pack_$D", text.store());
  if (name == "store_part") return with("pack_$D", text.write(name, ""));
  if (name == "scatter") return with("pack_$D", text.write(name, "stride"));
  return std::nullopt;
}

}  // namespace tw::cpu
