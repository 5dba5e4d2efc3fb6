#include "tw/target/mapping.h"

#include <algorithm>

#include "tw/base/error.h"

#include "tests/support/expect_error.h"

namespace tw {

TEST(Mapping, GoesThroughText) {
  EXPECT_EQ(to_string(Mapping{}), "cpu1");
  Mapping m = parse_mapping("cpu1 mc=264  kc=384");
  EXPECT_EQ(to_string(m), "cpu1 kc=384 mc=264");
  EXPECT_EQ(m.get("kc", 1), 384);
  EXPECT_EQ(m.get("nc", 1), 1);
  EXPECT_EQ(parse_mapping(to_string(m)), m);
}

TEST(Mapping, EveryKnobTakesItsWholeRange) {
  const auto check = [](const std::string& scheme, std::span<const Knob> knobs) {
    for (const Knob& k : knobs) {
      const std::string key = scheme + " " + k.name + "=";
      EXPECT_EQ(parse_mapping(key + std::to_string(k.lo)).get(k.name, -1), k.lo);
      EXPECT_EQ(parse_mapping(key + std::to_string(k.hi)).get(k.name, -1), k.hi);
      TW_EXPECT_ERROR(UserError, "wanted an integer in",
                      [&] { parse_mapping(key + std::to_string(k.hi + 1)); });
      TW_EXPECT_ERROR(UserError, "wanted an integer in",
                      [&] { parse_mapping(key + std::to_string(k.lo - 1)); });
    }
    EXPECT_TRUE(std::is_sorted(knobs.begin(), knobs.end(),
                               [](auto& a, auto& b) { return std::string(a.name) < b.name; }));
  };
  check("cpu1", cpu_knobs());
  check("cuda1", cuda_knobs());
}

TEST(Mapping, SchemesHaveKnobsOfTheirOwn) {
  EXPECT_EQ(to_string(parse_mapping("cuda1 warps=8")), "cuda1 warps=8");
  TW_EXPECT_ERROR(UserError, "unknown key 'kc'; known keys: cluster, stages, warps",
                  [] { parse_mapping("cuda1 kc=64"); });
  TW_EXPECT_ERROR(UserError, "unknown key 'warps'; known keys: ip",
                  [] { parse_mapping("cpu1 warps=8"); });
}

TEST(Mapping, WrongTextIsNamed) {
  TW_EXPECT_ERROR(UserError, "scheme 'gpu9'; known schemes: cpu1", [] { parse_mapping("gpu9"); });
  TW_EXPECT_ERROR(UserError, "scheme ''", [] { parse_mapping(""); });
  TW_EXPECT_ERROR(UserError, "unknown key 'xc'; known keys: ip, kc, mc",
                  [] { parse_mapping("cpu1 xc=3"); });
  TW_EXPECT_ERROR(UserError, "kc='3x'", [] { parse_mapping("cpu1 kc=3x"); });
  TW_EXPECT_ERROR(UserError, "kc=''", [] { parse_mapping("cpu1 kc"); });
  TW_EXPECT_ERROR(UserError, "key 'kc' stands twice", [] { parse_mapping("cpu1 kc=8 kc=8"); });
  TW_EXPECT_ERROR(UserError, "unknown key 'oops'", [] { Mapping().get("oops", 0); });
}

TEST(Mapping, OneThatIsNoTextIsCheckedAlike) {
  check_mapping({});
  check_mapping(parse_mapping("cpu1 kc=8 ip=0"));
  TW_EXPECT_ERROR(UserError, "scheme 'nope'; known schemes: cpu1",
                  [] { check_mapping({.scheme = "nope"}); });
  TW_EXPECT_ERROR(UserError, "unknown key 'zz'; known keys: ip", [] {
    check_mapping({.knobs = {{"zz", 1}}});
  });
  TW_EXPECT_ERROR(UserError, "kc='0': wanted an integer in 8..65536", [] {
    check_mapping({.knobs = {{"kc", 0}}});
  });
}

}  // namespace tw
