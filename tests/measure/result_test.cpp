#include "tw/measure/result.h"

#include <cmath>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace tw::measure {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;

Row row() {
  Row r;
  r.kernel = "gemm";
  r.shape = "k=64,m=64,n=64";
  r.dtype = "f32";
  r.cache = "warm";
  r.bound = "arithmetic";
  r.time_us = 10;
  r.peer = "openblas";
  r.peer_us = 12;
  r.ratio = 1.2;
  r.ci95[0] = 1.15;
  r.ci95[1] = 1.25;
  r.fraction = 0.5;
  r.ceiling_fraction = 0.75;
  r.blocks = 15;
  r.verified = true;
  return r;
}

json schema() {
  std::ifstream file(TW_TEST_DIR "/../../bench/schema.json");
  return json::parse(file);
}

TEST(Row, FollowsTheSchemaAndRoundTrips) {
  const json j = to_json(row());
  EXPECT_THAT(schema_faults(j, schema()), testing::IsEmpty());
  EXPECT_EQ(to_json(row_of(j)), j);
}

TEST(Row, EveryFieldIsRequired) {
  const json whole = to_json(row());
  for (const auto& [name, value] : whole.items()) {
    if (name == "time_ci95" || name == "chance") continue;  // rows of before have none
    json j = whole;
    j.erase(name);
    EXPECT_THAT(schema_faults(j, schema()), Contains("row lacks '" + name + "'"));
    TW_EXPECT_ERROR(UserError, "lacks the field '" + name + "'", [&] { row_of(j); });
  }
}

TEST(Schema, NamesWhatIsWrong) {
  const auto faults = [](const char* field, json value) {
    json j = to_json(row());
    j[field] = std::move(value);
    return schema_faults(j, schema());
  };
  EXPECT_THAT(faults("time_us", "10"), Contains("row.time_us is \"10\", wanted number"));
  EXPECT_THAT(faults("time_us", -1), Contains("row.time_us is -1, below 0"));
  EXPECT_THAT(faults("threads", 1.5), Contains("row.threads is 1.5, wanted integer"));
  EXPECT_THAT(faults("cache", "hot"), Contains(HasSubstr("wanted one of [\"warm\",\"cold\"]")));
  EXPECT_THAT(faults("ci95", {1.0}), Contains("row.ci95 has 1 items"));
  EXPECT_THAT(faults("ci95", {1.0, "x"}), Contains("row.ci95[1] is \"x\", wanted number"));
  EXPECT_THAT(faults("speed", 1), Contains("row has the unknown field 'speed'"));
  EXPECT_THAT(schema_faults(3, schema()), Contains("row is 3, wanted object"));
}

TEST(Wins, AProblemCountsOnceBesideItsBestPeer) {
  Row better = row(), other = row(), alone = row();
  better.peer = "onednn";
  better.ratio = 0.9;
  other.shape = "k=1,m=1,n=1";
  other.chance = 0.001;
  alone.peer.clear();
  const Wins w = wins({row(), better, other, alone});
  EXPECT_EQ(w.won, 1);
  EXPECT_EQ(w.problems, 2);
  EXPECT_EQ(w.alone, 1);
  EXPECT_DOUBLE_EQ(w.mean, std::sqrt(0.9 * 1.2));
  EXPECT_THAT(to_string(w), HasSubstr("1 of 2 problems won"));
  EXPECT_EQ(wins({}).problems, 0);
}

TEST(Table, ShowsOneLineARow) {
  Row alone = row();
  alone.peer.clear();
  alone.disturbed = 2;
  const std::string text = to_table({row(), alone});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_THAT(text, HasSubstr("openblas   1.200 [ 1.150, 1.250]   0.500   0.750"));
  EXPECT_THAT(text, HasSubstr("disturbed 2 of 15"));
}

}  // namespace
}  // namespace tw::measure
