#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/cli/command.h"

namespace tw {

using nlohmann::json;

TEST_F(Command, RowsAgainstEarlierOnes) {
  const auto row = [](const char* shape, double ratio, const char* date,
                      const char* peer = "blis") {
    return fmt::format(
        R"({{"kernel": "gemm", "shape": "{}", "dtype": "f32", "device": "CPU", "suite": "s",)"
        R"( "threads": 1, "cache": "warm", "verified": true, "time_us": 10.0,)"
        R"( "time_ci95": [9.9, 10.1],)"
        R"( "peer": "{}", "ratio": {}, "ci95": [{}, {}], "ceiling_fraction": {}, "date": "{}"}})"
        "\n",
        shape, peer, ratio, ratio - 0.01, ratio + 0.01, ratio / 2, date);
  };
  write("old/run-1.json", row("m=1", 0.7, "2026-11-01") + row("m=1", 1.2, "2026-11-20") +
                              row("m=2", 1.0, "2026-11-01") + row("m=3", 1.0, "2026-11-01", ""));
  write("same.json", row("m=1", 1.16, "2026-12-01") + row("m=2", 1.3, "2026-12-01") +
                         row("m=3", 0.97, "2026-12-01", "") + row("m=9", 1.0, "2026-12-01"));
  expect("bench --rows same.json --against old", 0,
         "3 rows compared, 1 without an earlier one, 0 lost more than 5 %");
  write("worse.json", row("m=1", 1.1, "2026-12-01") + row("m=2", 0.95, "2026-12-01"));
  expect("bench --rows worse.json --against old", 1,
         "LOST  CPU; s; gemm; m=1; f32; 1; warm; blis: ratio 1.100, at most 1.110; was 1.200, at "
         "least 1.190");
  expect("bench --rows worse.json --against old", 1,
         "2 rows compared, 0 without an earlier one, 1 ");
  write("alone.json", row("m=3", 0.9, "2026-12-01", ""));
  expect("bench --rows alone.json --against old", 1, "m=3; f32; 1; warm; : ceiling 0.450, at most");
  expect("bench --rows same.json", 2, "--rows without --against");
}

/// A row that everything takes.
json good_row() {
  return {{"kernel", "gemm"}, {"shape", "m=1"},  {"dtype", "f32"},         {"device", "CPU"},
          {"suite", "s"},     {"threads", 1},    {"cache", "warm"},        {"time_us", 10.0},
          {"peer", "blis"},   {"ratio", 1.0},    {"ci95", {0.9, 1.1}},     {"date", "2026-11-01"},
          {"verified", true}, {"commit", "abc"}, {"ceiling_fraction", 0.5}};
}

class BadRows : public Command {
 protected:
  BadRows() { write("good.json", good_row().dump() + "\n"); }
  /// As rows, and as earlier ones.
  void expect_refused(const std::string& name, const std::string& part) const {
    expect("bench --rows " + name + " --against good.json", 2, part);
    expect("bench --rows good.json --against " + name, 2, part);
  }
};

TEST_F(BadRows, NameFileLineAndField) {
  const std::tuple<const char*, json, const char*> cases[] = {
      {"time_us", "fast", "'time_us' is \"fast\"; wanted a number above 0"},
      {"time_us", -5, "'time_us' is -5; wanted a number above 0"},
      {"time_us", 0, "'time_us' is 0; wanted"},
      {"time_us", nullptr, "the row lacks 'time_us'; wanted a number above 0"},
      {"ratio", "x", "'ratio' is \"x\"; wanted a number above 0"},
      {"ratio", nullptr, "the row lacks 'ratio'"},
      {"ci95", json::array({0.9}), "'ci95' is [0.9]; wanted [low, high]"},
      {"ci95", json::array({1.1, 0.9}), "'ci95' is [1.1,0.9]; wanted [low, high]"},
      {"ci95", nullptr, "the row lacks 'ci95'"},
      {"time_ci95", "wide", "'time_ci95' is \"wide\""},
      {"verified", false, "'verified' is false; wanted true"},
      {"verified", nullptr, "the row lacks 'verified'"},
      {"kernel", 3, "'kernel' is 3; wanted a text"},
      {"device", nullptr, "the row lacks 'device'"},
      {"date", 20261101, "'date' is 20261101; wanted a text"},
      {"peer", 7, "'peer' is 7; wanted a text"},
      {"threads", 0.5, "'threads' is 0.5; wanted a whole number"}};
  for (const auto& [field, value, part] : cases) {
    json row = good_row();
    if (value.is_null())
      row.erase(field);
    else
      row[field] = value;
    write("bad.json", "\n" + row.dump() + "\n");
    expect_refused("bad.json", std::string("bad.json:2: ") + part);
  }
  json alone = good_row();
  alone["peer"] = "";
  alone.erase("ceiling_fraction");
  write("bad.json", alone.dump() + "\n");
  expect_refused("bad.json", "bad.json:1: the row lacks 'ceiling_fraction'");
  write("bad.json", "[1, 2]\n");
  expect_refused("bad.json", "bad.json:1: no row, which is an object; wanted one row a line");
}

TEST_F(BadRows, AreNoneAtAll) {
  write("other.json", "{\"a\": 1}\n");
  write("empty.json", "");
  std::filesystem::create_directory(folder_ + "/empty");
  for (const char* name : {"other.json", "empty.json", "empty"})
    expect_refused(name, std::string("got '") + name + "', in which there is no row of times");
  expect_refused("nofile", "cannot read 'nofile': No such file or directory; name a file or a");
  expect_refused("/dev/zero", "cannot read '/dev/zero'");
  expect("bench --rows nofile --against good.json", 2, "tilewright: --rows: cannot read");
  expect("bench --rows good.json --against nofile", 2, "tilewright: --against: cannot read");
  expect("bench softmax --shape m=2,n=3 --against nofile", 2, "--against: cannot read");
}

TEST_F(BadRows, NothingComparedIsNoSuccess) {
  json other = good_row();
  other["shape"] = "m=2";
  write("other.json", other.dump() + "\n");
  expect(
      "bench --rows good.json --against other.json", 2,
      "--against: nothing was compared: none of the 1 rows has an earlier one, as 'CPU; s; gemm;");
  expect("bench --rows good.json --against good.json", 0, "1 row compared");
}

TEST_F(BadRows, WordsThatWouldChangeNothingAreRefused) {
  for (const char* word : {"--shape m=2", "--dtype f32", "--option op=max", "--threads 1", "--json",
                           "--mapping cpu1", "--peer blis", "--before x"}) {
    const std::string name = std::string(word).substr(0, std::string(word).find(' '));
    expect(std::string("bench --rows good.json --against good.json ") + word, 2,
           "--rows with " + name + "; --rows times nothing");
  }
  expect("bench gemm --rows good.json --against good.json", 2, "--rows with a kernel or suite");
  expect("bench gemm --before " TW_COMMAND " --against good.json", 2, "--before with --against");
}

}  // namespace tw
