#include "tw/target/launch_spec.h"

#include "tw/base/error.h"
#include "tw/target/specialisation.h"

#include "tests/support/expect_error.h"

namespace tw {

static LaunchSpec example() {
  Expr m = Expr::symbol(SymbolKind::dim, 0), n = Expr::symbol(SymbolKind::dim, 1);
  LaunchSpec s;
  s.entry = "tw_gemm_0123abcd";
  s.scratch_bytes = 4096;
  s.dims = {{"M", 1}, {"N", 64}};
  s.args = {{"A", f32, 2, false, true, {m, n}},
            {"bias", bf16, 1, false, true, {n * 2}},
            {"scale", f32, 0, false, true, {}},
            {"C", f16, 2, true, false, {m, Expr(8)}},
            {"D", i32, 1, true, true, {m}}};
  s.grid = {cdiv(m, 64), floordiv(n, 16) + 1};
  return s;
}

TEST(LaunchSpec, TextIsOneItemALine) {
  EXPECT_EQ(to_string(example()),
            "launch1\nentry tw_gemm_0123abcd\nscratch 4096\ndim M 1\ndim N 64\n"
            "arg A f32 r\nextent M\nextent N\narg bias bf16 r\nextent N*2\narg scale f32 r\n"
            "arg C f16 w\nextent M\nextent 8\narg D i32 rw\nextent M\n"
            "grid cdiv(M, 64)\ngrid floordiv(N, 16) + 1\nend\n");
}

TEST(LaunchSpec, ParsesBack) {
  LaunchSpec s = parse_launch_spec(to_string(example()));
  EXPECT_EQ(to_string(s), to_string(example()));
  ASSERT_EQ(s.args.size(), 5u);
  EXPECT_EQ(s.args[0].rank, 2);
  EXPECT_EQ(s.args[2].rank, 0);
  EXPECT_TRUE(s.args[4].written && s.args[4].read);
  EXPECT_TRUE(s.args[3].written && !s.args[3].read);
  EXPECT_EQ(s.args[1].dims[0], example().args[1].dims[0]);
}

TEST(LaunchSpec, BlocksOfAGpuGoThroughText) {
  LaunchSpec s = example();
  s.threads = 256;
  s.shared_bytes = 98304;
  s.cluster = 2;
  s.early = true;
  s.tensor_maps = {{0, 128, {64, 16}}, {3, 0, {8, 1}}};
  const std::string text = to_string(s);
  EXPECT_THAT(text,
              testing::HasSubstr("scratch 4096\nblock 256 98304\ncluster 2\nearly\ndim M 1\n"));
  EXPECT_THAT(text, testing::HasSubstr("map 0 128 64 16\nmap 3 0 8 1\ngrid"));
  const LaunchSpec back = parse_launch_spec(text);
  EXPECT_EQ(back.threads, 256);
  EXPECT_EQ(back.shared_bytes, 98304);
  EXPECT_EQ(back.cluster, 2);
  EXPECT_TRUE(back.early);
  ASSERT_EQ(back.tensor_maps.size(), 2u);
  EXPECT_EQ(back.tensor_maps[0].box, (std::vector<int>{64, 16}));
  EXPECT_EQ(to_string(back), text);
  EXPECT_EQ(parse_launch_spec(to_string(example())).threads, 0);
}

TEST(LaunchSpec, WorkspaceAndOrderGoThroughText) {
  LaunchSpec s = example();
  s.args[4].workspace = s.in_order = true;
  const std::string text = to_string(s);
  EXPECT_THAT(text, testing::HasSubstr("scratch 4096\nin_order\ndim M 1\n"));
  EXPECT_THAT(text, testing::HasSubstr("arg D i32 zero\nextent M\n"));
  const LaunchSpec back = parse_launch_spec(text);
  EXPECT_TRUE(back.in_order);
  EXPECT_TRUE(back.args[4].workspace && back.args[4].read && back.args[4].written);
  EXPECT_FALSE(back.args[3].workspace);
  EXPECT_EQ(to_string(back), text);
}

TEST(LaunchSpec, EveryTruncationIsAnError) {
  const std::string text = to_string(example());
  for (size_t n = 0; n + 4 < text.size(); n += 3) {
    EXPECT_THROW(parse_launch_spec(text.substr(0, n)), UserError) << n;
  }
}

TEST(LaunchSpec, DamagedTextIsNamedByLine) {
  auto damaged = [](const char* part, const std::string& body) {
    TW_EXPECT_ERROR(UserError, part, [&] { parse_launch_spec(body); });
  };
  damaged("line 1: 'spec9': wanted 'launch1'", "spec9\nend\n");
  damaged("the text ends; wanted 'end'", "launch1\nentry e\n");
  damaged("line 2: 'colour red': no such item", "launch1\ncolour red\nend\n");
  damaged("line 2: 'dim M': a field is missing", "launch1\ndim M\nend\n");
  damaged("line 2: 'scratch many': wanted an integer", "launch1\nscratch many\nend\n");
  damaged("line 2: 'block 32': a field is missing", "launch1\nblock 32\nend\n");
  damaged("line 2: 'block 0 0': wanted 1 to 1024 threads", "launch1\nblock 0 0\nend\n");
  damaged("line 2: 'block 1025 0': wanted 1 to 1024", "launch1\nblock 1025 0\nend\n");
  damaged("line 2: 'cluster 17': wanted 1 to 16 blocks", "launch1\ncluster 17\nend\n");
  damaged("line 2: 'map 0 128 8': no such argument", "launch1\nmap 0 128 8\nend\n");
  damaged("no dtype 'f33'", "launch1\narg A f33 r\nend\n");
  damaged("wanted r, w, rw or zero", "launch1\narg A f32 x\nend\n");
  damaged("line 2: 'extent 3': no such item", "launch1\nextent 3\nend\n");
  damaged("line 3: 'grid Q'", "launch1\ndim M 1\ngrid Q\nend\n");
}

TEST(Specialisation, TextNamesEveryFact) {
  Specialisation s;
  s.params = {{f32, 2, 1, 0, true, true}, {bf16, 3, -1, 0b101, false}};
  EXPECT_EQ(to_string(s, {"A", "B"}),
            "A f32 rank 2 unit 1 aligned whole; B bf16 rank 3 zero 0,2; fits64");
  s.fits32 = s.streaming = true;
  s.params.clear();
  EXPECT_EQ(to_string(s, {}), "fits32 streaming");
}

}  // namespace tw
