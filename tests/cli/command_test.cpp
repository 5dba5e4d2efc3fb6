#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "tw/measure/result.h"

namespace tw {

/// How one call of the command ended.
struct Ended {
  int code;
  std::string out;  ///< standard output and standard error
};

/// Runs `tilewright WORDS` in a shell, in a folder and with a cache of the test's own.
class Command : public testing::Test {
 protected:
  Command() {
    std::string pattern = testing::TempDir() + "tw-cli-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    setenv("TW_CACHE_DIR", (folder_ + "/cache").c_str(), 1);
  }
  ~Command() override { std::filesystem::remove_all(folder_); }

  Ended call(const std::string& words) const {
    std::string line = "cd '" + folder_ + "' && '" TW_COMMAND "' " + words + " 2>&1";
    FILE* pipe = popen(line.c_str(), "r");
    std::string out;
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, n);
    int status = pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
  }

  void expect(const std::string& words, int code, const std::string& part) const {
    Ended e = call(words);
    EXPECT_EQ(e.code, code) << words << "\n" << e.out;
    EXPECT_NE(e.out.find(part), std::string::npos) << words << "\n" << e.out;
    EXPECT_EQ(e.out.find("terminate called"), std::string::npos);
  }

  void write(const std::string& file, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + file, std::ios::binary) << bytes;
  }

  std::string folder_;
};

TEST_F(Command, BenchWritesRowsOfTheSchema) {
  expect("bench row_reduce --shape m=4,n=64 --threads 1 --json=rows.json", 0, "row_reduce");
  std::ifstream schema_file(TW_TEST_DIR "/../../bench/schema.json");
  const nlohmann::json schema = nlohmann::json::parse(schema_file);
  std::ifstream rows(folder_ + "/rows.json");
  int count = 0;
  for (std::string line; std::getline(rows, line); ++count) {
    const nlohmann::json row = nlohmann::json::parse(line);
    EXPECT_EQ(measure::schema_faults(row, schema), std::vector<std::string>{});
    EXPECT_TRUE(row["verified"]);
    EXPECT_LE(row["fraction"], 1);
  }
  EXPECT_GE(count, 1);
}

TEST_F(Command, BenchRefusesWhatItDoesNotKnow) {
  expect("bench softmax --shape m=4,n=64 --peer nobody", 2, "no peer is called 'nobody'");
  expect("bench sgemn", 2, "no kernel is called 'sgemn'");
  expect("bench sgemm --peer nobody", 2, "no peer is called 'nobody'");
}

TEST_F(Command, HelpTeaches) {
  expect("--help", 0, "tilewright VERB --help teaches a verb");
  for (const char* verb :
       {"bench", "cache", "check", "devices", "doctor", "eject", "kernels", "opt", "run"}) {
    expect(std::string(verb) + " --help", 0, "Examples:");
  }
  setenv("TW_HELP", "1", 1);
  expect("", 0, "TW_CACHE_DIR");
  unsetenv("TW_HELP");
}

TEST_F(Command, ListsWhatThereIs) {
  expect("devices", 0, "cpu:0");
  expect("devices --json", 0, "\"isa\":");
  expect("kernels", 0, "softmax");
  expect("kernels softmax", 0, "axes (--shape)");
  expect("kernels --json", 0, "\"kernel\":\"softmax\"");
  expect("doctor", 0, "ok    kernel");
}

TEST_F(Command, WrongWordsAreErrorsOfTheUser) {
  expect("", 2, "subcommand is required");
  expect("rnu softmax", 2, "there is no verb 'rnu'; did you mean 'run'?");
  expect("run", 2, "TARGET is required");
  expect("run softmaxx", 2, "did you mean 'softmax'?");
  expect("kernels sofmax", 2, "did you mean 'softmax'?");
  expect("run softmax --device gpu:0", 2, "gpu:0");
  expect("run softmax --shape m", 2, "--shape got 'm'; wanted axis=extent");
  expect("run softmax --shape m=x", 2, "--shape m got 'x'; wanted a whole number");
  expect("run softmax --shape k=3", 2, "kernel 'softmax' has no axis 'k'");
  expect("run softmax --shape m=-3", 2, "negative");
  expect("run softmax --dtype f33", 2, "--dtype got 'f33'");
  expect("run softmax --dtype i8", 2, "kernel 'softmax' has no i8 form; use one of f32, bf16");
  expect("run row_reduce --option op=sun", 2, "did you mean 'sum'?");
  expect("run row_reduce --option sum", 2, "--option got 'sum'; wanted name=value");
  expect("run softmax --threads -1", 2, "--threads");
  expect("run softmax --mapping 'cpu1 speed=9'", 2, "speed");
  expect("run softmax --shape m=1000000000,n=1000000000", 3, "the machine has");
  expect("cache explode", 2, "known: list, show, why, clear");
  expect("cache show", 2, "needs a name");
  expect("cache show 00000000", 2, "no cache entry's name starts with '00000000'");
  expect("eject softmax", 2, "--output is required");
  expect("eject sofmax --output own.cpp", 2, "did you mean 'softmax'?");
  expect("eject softmax --output own.txt", 2, "wanted a file that ends in .cpp");
  expect("eject softmax --output own.cpp --isa sse", 2,
         "known machines: avx2, avx512, neon, generic");
  expect("eject softmax --output no/such/folder/own.cpp", 3, "cannot write 'no/such/folder/own");
  expect("opt nothing.tw", 2, "cannot read 'nothing.tw'");
  expect("opt softmax --pass polish", 2, "no pass is named 'polish'");
}

TEST_F(Command, WrongFilesAreErrorsOfTheUser) {
  write("empty.npy", "");
  write("text.npy", "this is no tensor");
  expect("run softmax --input X=missing.npy", 3, "missing.npy");
  expect("run softmax --input X=empty.npy", 2, "empty.npy");
  expect("run softmax --input X=text.npy", 2, "text.npy");
  expect("run softmax --input X", 2, "--input got 'X'; wanted name=FILE.npy");
  expect("run softmax --input Z=empty.npy", 2, "--input names 'Z'");
  expect("run softmax --input X=random:x", 2, "wanted a whole number");
  expect("run softmax --shape m=2,n=3 --output Z=y.npy", 2, "--output names 'Z'");
  expect("run softmax --shape m=2,n=3 --output Y=no/such/folder/y.npy", 3, "no/such/folder");
  write("bad.tw", "program x\n  nonsense\n");
  expect("opt bad.tw", 2, "bad.tw:2");
}

TEST_F(Command, RunsOnFilesAndChecks) {
  expect("run softmax --shape m=3,n=50 --output Y=y.npy --check", 0, "wrote y.npy");
  expect("run row_reduce --input X=y.npy --option op=sum --output Y=sums.npy", 0, "m=3,n=50");
  expect("run row_reduce --input X=y.npy --shape n=51", 2, "wanted f32[3,51]");
  expect("run softmax --shape m=3,n=50 --device interp --check", 0, "against float64");
  expect("cache list", 0, "2 entries");
  expect("cache why softmax --shape m=3,n=50", 0, "the cache has this variant");
  expect("cache why softmax --shape m=3,n=50 --dtype bf16", 0, "bf16");
  expect("check row_reduce --shape m=3,n=50", 0, "right");
  expect("cache clear", 0, "cleared");
  expect("cache list", 0, "0 entries");
}

TEST_F(Command, EjectsSourceThatBuildsAlone) {
  expect("eject softmax --dtype bf16 --output own.cpp", 0, "wrote own.cpp and own.h");
  Ended built = call("devices >/dev/null && c++ -O2 -c own.cpp -o own.o");
  EXPECT_EQ(built.code, 0) << built.out;
  EXPECT_EQ(built.out, "") << "not even a warning";
  expect("eject gemm --option epilogue=bias --isa neon --threads 4 --output arm.cpp", 0,
         "gemm k=1024,m=1024,n=1024 f32 epilogue=bias out=same, neon");
  expect("eject softmax --shape m=65536,n=4096 --output large.cpp", 0, "g++ -O2 -c large.cpp");
  auto streams = [&](const char* file) {
    std::ifstream header(folder_ + "/" + file);
    const std::string text((std::istreambuf_iterator<char>(header)), {});
    return text.find("around the caches") != std::string::npos;
  };
  EXPECT_FALSE(streams("own.h"));
  EXPECT_TRUE(streams("large.h") || !__builtin_cpu_supports("avx2"));
}

}  // namespace tw
