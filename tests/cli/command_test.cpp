#include "tests/cli/command.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tw/measure/result.h"

namespace tw {

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
  expect("bench sgemn", 2, "no kernel or suite is called 'sgemn'; did you mean 'sgemm'?");
  expect("bench sofmax", 2, "no kernel or suite is called 'sofmax'; did you mean 'softmax'?");
  expect("bench unlike-all", 2, "gemm, gemm-bf16, gemm-gelu, gemm-skinny, ");
  expect("bench sgemm --shape m=4", 2, "suite 'sgemm' takes no --shape; name a kernel");
  expect("bench sgemm --option epilogue=bias", 2, "suite 'sgemm' takes no --option");
  if (std::filesystem::exists(std::filesystem::path(TW_COMMAND).parent_path() / "peers/blis.so"))
    expect("bench softmax --shape m=4,n=64 --threads 1 --peer blis", 2,
           "peer 'blis' does not do softmax");
  expect("bench sgemm --peer nobody", 2, "no peer is called 'nobody'");
  expect("bench sgemm --threads 7", 2, "it has --threads 1 --dtype f32, --threads 2 --dtype f32");
  expect("bench sgemm --dtype bf16", 2, "it has --threads 1 --dtype f32");
  expect("bench sgemm --dtype f33", 2, "--dtype got 'f33'");
}

TEST_F(Command, CheckJudgesCallables) {
  const std::string shape = "check gemm --shape m=40,n=50,k=60 --callable ";
  expect(shape + "ours", 0, "ACCEPTED");
  expect(shape + TW_ZOO "/honest_fma.so", 0, "16 of 16 mutants of the reference told");
  expect(shape + TW_ZOO "/zeros.so", 1, "REJECTED: ");
  expect(shape + TW_ZOO "/zeros.so --json", 1, "\"fault\":\"k=60,m=40,n=50");
  expect("eject gemm --output g.cpp", 0, "wrote g.cpp");
  expect(shape + "g.cpp", 0, "ACCEPTED");
  expect(shape + "g.cpp --option epilogue=bias", 2, "was made for none of these problems");
  expect("check gemm --dtype bf16 --callable " TW_ZOO "/honest_fma.so", 1, "refuses every problem");
}

/// A tile's last vector is longer than the tile: what lies behind the tensor must not be read.
TEST_F(Command, CheckFindsNoReadBehindATensor) {
  expect("check rope --shape d=10,h=3,s=5 --callable ours", 0, "ACCEPTED");
  expect("check layernorm --shape m=3,n=13 --option weights=same --callable ours", 0, "ACCEPTED");
}

TEST_F(Command, CheckRefusesWhatIsNoCallable) {
  expect("check --callable ours --dtype f64", 0, "2 kernels, 0 rejected");
  expect("check --callable x.so", 2, "--callable needs a kernel");
  expect("check gemm --callable x.so", 2, "--callable got 'x.so', which is no file");
  std::ofstream(folder_ + "/own.cpp") << "int x;\n";
  expect("check gemm --callable own.cpp", 2, "own.h declares no function as 'eject' writes it");
}

TEST_F(Command, HelpTeaches) {
  expect("--help", 0, "tilewright VERB --help teaches a verb");
  expect("--help", 0, "Exit codes: 0 done, 1 check found a wrong result");
  expect("--version", 0, "tilewright 0.1.0\n");
  for (const char* verb : {"bench", "cache", "check", "conformance", "devices", "doctor", "eject",
                           "explain", "kernels", "opt", "run"}) {
    expect(std::string(verb) + " --help", 0, "Examples:");
  }
  expect("opt --help", 0, "  fuse_contraction");
  expect("check --help", 0, "tilewright check softmax --device emu:0 --text mine.cu");
  expect("run --help", 0, "kc  8..65536, elements of k in one packed block of a contraction");
  setenv("TW_HELP", "1", 1);
  expect("", 0, "TW_CACHE_DIR");
  expect("", 0, "home folder, where ~/.cache lies\n");
  expect("", 0, "the least recently used go first (default 1024)\n");
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

TEST_F(Command, ChecksOnTheEmulator) {
  expect("devices", 0, "emu:0");
  expect("check softmax --device emu:0 --shape m=3,n=40 --seeds 2", 0, "right");
  setenv("TW_EMU_SEED", "nope", 1);
  expect("check softmax --device emu:0 --shape m=3,n=40", 2, "TW_EMU_SEED is 'nope'");
  unsetenv("TW_EMU_SEED");
}

TEST_F(Command, DumpsNamePasses) {
  for (const char* words : {"opt softmax --pass simplify", "run softmax --shape m=2,n=3"}) {
    setenv("TW_DUMP", "nope", 1);
    expect(words, 2, "TW_DUMP is 'nope', which names no pass; known passes: canonicalize, ");
    setenv("TW_DUMP", "simp*@soft*", 1);
    expect(words, 0, "// softmax after simplify");
    unsetenv("TW_DUMP");
  }
}

TEST_F(Command, EachLineIsWrittenWhenItIsSaid) {
  write("compiler", "#!/bin/sh\ncp out seen\nexit 1\n");
  std::filesystem::permissions(folder_ + "/compiler", std::filesystem::perms::owner_all);
  setenv("TW_CXX", (folder_ + "/compiler").c_str(), 1);
  call("doctor", ">out");
  unsetenv("TW_CXX");
  EXPECT_NE(read("seen").find("ok    cache"), std::string::npos) << read("seen");
}

TEST_F(Command, DoctorEndsAsTheVerbsDo) {
  setenv("TW_CXX", "/bin/nope", 1);
  for (const char* words : {"doctor", "run softmax --shape m=2,n=3"})
    expect(words, 2, "TW_CXX is '/bin/nope', which is no program");
  setenv("TW_CXX", "/bin/false", 1);
  for (const char* words : {"doctor", "run softmax --shape m=2,n=3"})
    expect(words, 3, "/false' failed with 1");
  unsetenv("TW_CXX");
}

TEST_F(Command, WrongWordsAreErrorsOfTheUser) {
  expect("", 2, "tilewright: a verb is missing; known verbs: bench, cache");
  for (const char* words : {"--frob", "--frob run softmax", "run softmax --frob"})
    expect(words, 2, "tilewright: unknown option '--frob'");
  expect("run softmax x", 2, "tilewright: unexpected word 'x'");
  expect("run softmax --threads", 2, "tilewright: --threads: 1 required INT missing");
  expect("rnu softmax", 2, "there is no verb 'rnu'; did you mean 'run'?");
  expect("run", 2, "tilewright: TARGET is required");
  expect("run softmaxx", 2, "did you mean 'softmax'?");
  expect("kernels sofmax", 2, "did you mean 'softmax'?");
  expect("kernels sofmax --json", 2, "did you mean 'softmax'?");
  for (const char* verb : {"run", "check"})
    expect(std::string(verb) + " softmax --device gpu", 2,
           "unknown device 'gpu'; known devices: cpu:0, cuda:0, emu:0, interp");
  expect("run softmax --shape m", 2, "--shape got 'm'; wanted axis=extent");
  expect("run softmax --shape m=x", 2, "--shape m got 'x'; wanted a whole number");
  expect("run softmax --shape k=3", 2, "kernel 'softmax' has no axis 'k'");
  expect("run softmax --shape m=-3", 2, "negative");
  expect("run softmax --dtype f33", 2, "--dtype got 'f33'");
  expect("run softmax --dtype i8", 2, "kernel 'softmax' has no i8 form; use one of f32, bf16");
  expect("run row_reduce --option op=sun", 2, "did you mean 'sum'?");
  expect("run row_reduce --option sum", 2, "--option got 'sum'; wanted name=value");
  for (const char* n : {"-1", "x", "1.5", "99999999999999999999", "2000000"})
    for (const char* verb : {"run", "check", "bench", "opt"})
      expect(std::string(verb) + " softmax --threads " + n, 2,
             "--threads got '" + std::string(n) + "'; wanted a whole number");
  expect("check softmax --seeds 0", 2, "--seeds got '0'; wanted a whole number from 1");
  expect("run softmax --shape m=2 --shape n=3,m=4", 2, "--shape names 'm' twice");
  expect("run row_reduce --option op=sum --option op=sum", 2, "--option names 'op' twice");
  expect("run softmax --input X=random:1 --input X=random:1", 2, "--input names 'X' twice");
  expect("run softmax --output Y=a.npy --output Y=b.npy", 2, "--output names 'Y' twice");
  for (const char* flag : {"--input X=", "--output Y=", "--input =x.npy", "--shape m="}) {
    const std::string text(flag);
    const size_t space = text.find(' ');
    expect("run softmax " + text, 2,
           text.substr(0, space) + " got '" + text.substr(space + 1) + "'; wanted ");
  }
  expect("check gemm --shape m=17,q=5", 2, "kernel 'gemm' has no axis 'q'; known: ");
  expect("run softmax --mapping 'cpu1 speed=9'", 2, "speed");
  expect("run softmax --shape m=1000000000,n=1000000000", 3, "the machine has");
  expect("cache explode", 2, "known: list, show, why, clear");
  expect("cache show", 2, "needs a name");
  for (const char* verb : {"list", "clear"}) {
    expect(fmt::format("cache {} extra", verb), 2, "takes no name, got 'extra'");
    expect(fmt::format("cache {} --dtype f32", verb), 2, "only cache why takes flags");
    expect(fmt::format("cache {} --shape m=3", verb), 2, "only cache why takes flags");
  }
  expect("cache show 00000000", 2, "no cache entry's name starts with '00000000'");
  expect("eject softmax", 2, "--output is required");
  expect("eject softmax --output own.cpp --name a-b", 2, "eject: 'a-b' is no name for a function");
  expect("eject sofmax --output own.cpp", 2, "did you mean 'softmax'?");
  expect("eject softmax --output own.txt", 2, "wanted a file that ends in .cpp");
  expect("eject softmax --output own.cu", 2, "wanted a file that ends in .cpp");
  expect("eject softmax --output own.cpp --device sm_90a", 2, "wanted a file that ends in .cu");
  expect("eject softmax --output own.cu --device sm_1", 2,
         "known gpus: sm_80 (a100), sm_90a (h200)");
  expect("eject softmax --output own.cu --device sm_80 --isa avx2", 2, "chosen for CPUs only");
  expect("eject softmax --output own.cpp --isa sse", 2,
         "known machines: avx2, avx512, neon, generic");
  expect(
      "eject softmax --output no/such/folder/own.cpp", 2,
      "cannot write 'no/such/folder/own.cpp': No such file or directory; name a file in a folder "
      "that exists");
  expect("opt nothing.tw", 2, "cannot read 'nothing.tw'");
  expect("opt softmax --pass polish", 2, "no pass is named 'polish'");
}

TEST_F(Command, EmptyValuesAreErrorsOfTheUser) {
  for (const char* words :
       {"check gemm --callable", "bench --rows", "bench softmax --against", "bench gemm --before",
        "bench gemm --peer", "bench gemm --mapping", "bench gemm --json", "bench gemm --shape",
        "check gemm --text", "eject gemm --output own.cpp --name", "run gemm --device",
        "eject gemm --output own.cpp --isa", "run gemm --dtype", "opt gemm --pass"}) {
    const std::string flag = std::string(words).substr(std::string(words).rfind(' ') + 1);
    const std::string part = flag + " got ''; wanted a value that is not empty";
    expect(std::string(words) + " \"$TW_NOT_SET\"", 2, part);
    expect(std::string(words) + "=", 2, part);
    expect(std::string(words) + " ' '", 2, flag + " got ' '; wanted");
  }
  expect("bench ''", 2, "a word got ''; wanted a value that is not empty");
  expect("'' gemm", 2, "a word got ''");
}

TEST_F(Command, WrongFilesAreErrorsOfTheUser) {
  write("empty.npy", "");
  write("text.npy", "this is no tensor");
  expect("run softmax --input X=missing.npy", 2, "missing.npy: No such file");
  expect("run softmax --input X=.", 2, ".: Is a directory");
  expect("run softmax --input X=empty.npy", 2, "empty.npy");
  expect("run softmax --input X=text.npy", 2, "text.npy");
  expect("run softmax --input X", 2, "--input got 'X'; wanted name=FILE.npy");
  expect("run softmax --input Z=empty.npy", 2, "--input names 'Z'");
  expect("run softmax --input X=random:x", 2, "wanted a whole number");
  expect("run softmax --shape m=2,n=3 --output Z=y.npy", 2, "--output names 'Z'");
  expect("run softmax --shape m=2,n=3 --output Y=no/such/folder/y.npy", 2, "no/such/folder");
  expect("run softmax --shape m=2,n=3 --output Y=/dev/full", 3, "No space left");
  for (const char* verb : {"run softmax --output Y=", "check row_reduce --json=",
                           "bench row_reduce --json=", "kernels --json="})
    for (const char* file : {"no/such/y", ".", "empty.npy/y"})
      expect(std::string(verb) + file, 2, "cannot write '" + std::string(file) + "'");
  for (const char* no_text : {".", "/dev/zero", "nothing"})
    expect(std::string("opt ") + no_text, 2, "cannot read '" + std::string(no_text) + "'");
  expect("opt - <.", 2, "cannot read '-'");
  expect("opt - </dev/zero", 2, "'-' has more than 64 MB of text");
  write("bad.tw", "program x\n  nonsense\n");
  expect("opt bad.tw", 2, "bad.tw:2");
}

TEST_F(Command, AFullOrClosedStandardOutputIsAnErrorOfTheEnvironment) {
  for (const char* words : {"--help", "--version", "kernels", "kernels --json", "opt softmax",
                            "check row_reduce --shape m=3,n=50"})
    for (const char* no_output : {"2>&1 >/dev/full", "2>&1 >&-"}) {
      const Ended e = call(words, no_output);
      EXPECT_EQ(e.code, 3) << words << no_output << e.out;
      EXPECT_NE(e.out.find("cannot write to standard output"), std::string::npos) << e.out;
    }
}

TEST_F(Command, AFullOrClosedStandardErrorChangesNoExitCode) {
  for (const char* no_errors : {"2>/dev/full", "2>&-"}) {
    EXPECT_EQ(call("rnu", no_errors).code, 2);
    EXPECT_EQ(call("run", no_errors).code, 2);
    EXPECT_EQ(call("run softmax --input X=missing.npy", no_errors).code, 2);
    EXPECT_EQ(call("check row_reduce --shape m=3,n=50", no_errors).code, 0);
    setenv("TW_DUMP", "all", 1);
    EXPECT_EQ(call("opt softmax --pass canonicalize", no_errors).code, 0);
    unsetenv("TW_DUMP");
  }
}

TEST_F(Command, DtypeChoosesFromTheListOfAKernel) {
  expect("check softmax --dtype f33", 2, "--dtype got 'f33'");
  expect("check --dtype f33", 2, "--dtype got 'f33'");
  expect("check softmax --dtype i8", 2, "--dtype got 'i8', of which 'softmax' lists no problem");
  expect("bench softmax --dtype i8", 2, "--dtype got 'i8', of which 'softmax' lists no problem");
  expect("check --dtype u64", 2, "no kernel lists a problem of u64");
}

TEST_F(Command, CheckPrintsOnlyJsonOnStandardOutputWhenItIsAsked) {
  int64_t all = 0, chosen = 0;
  for (const char* words : {"check row_reduce --json", "check row_reduce --dtype bf16 --json"}) {
    const Ended e = call(std::string(words) + " --device interp", "2>errors");
    EXPECT_EQ(e.code, 0);
    const nlohmann::json row = nlohmann::json::parse(e.out);
    EXPECT_EQ(row["kernel"], "row_reduce");
    (all == 0 ? all : chosen) = row["problems"];
    const std::string text = read("errors");
    EXPECT_NE(text.find("right"), std::string::npos);
    EXPECT_EQ(text.find('\r'), std::string::npos);
  }
  EXPECT_GT(chosen, 0);
  EXPECT_LT(chosen, all);
}

TEST_F(Command, AWrongResultEndsWithOne) {
  write("wrong",
        "#!/bin/sh\n"
        "for f; do case $f in *.cpp) sed -i 's/= tw_sqrt(/= (/' \"$f\";; esac; done\n"
        "exec g++ \"$@\"\n");
  std::filesystem::permissions(folder_ + "/wrong", std::filesystem::perms::owner_all);
  const char* const set = std::getenv("TW_CXX");
  const std::string before = set ? set : "";
  setenv("TW_CXX", (folder_ + "/wrong").c_str(), 1);
  const std::string problem = " elementwise --shape m=3,n=1 --option op=sqrt";
  expect("run" + problem + " --output Y=y.npy --check", 1, "the result is wrong");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/y.npy"));
  expect("check" + problem, 1, "WRONG");
  setenv("TW_CXX", before.c_str(), 1);
  expect("run" + problem + " --output Y=y.npy --check", 0, "wrote y.npy");
}

TEST_F(Command, RunsOnFilesAndChecks) {
  expect("run softmax --shape m=3,n=50 --output Y=y.npy --check", 0, "wrote y.npy");
  expect("run row_reduce --input X=y.npy --option op=sum --output Y=sums.npy", 0, "m=3,n=50");
  expect("run gemm --shape m=3,n=4,k=5 --input B=random:7 --device interp", 0,
         "inputs that no --input names: A=random:1\n");
  expect("run row_reduce --input X=y.npy --shape n=51", 2, "wanted f32[3,51]");
  expect("run softmax --shape m=3,n=50 --device interp --check", 0, "against float64");
  expect("cache list", 0, "2 entries");
  expect("cache why softmax --shape m=3,n=50", 0, "the cache has this variant");
  expect("cache why softmax --shape m=3,n=50 --dtype bf16", 0, "bf16");
  expect("check row_reduce --shape m=3,n=50", 0, "right");
  expect("cache clear softmax", 2, "takes no name");
  expect("cache list", 0, "3 entries");
  expect("cache clear", 0, "cleared");
  expect("cache list", 0, "0 entries");
}

TEST_F(Command, EjectsSourceThatBuildsAlone) {
  expect("eject softmax --dtype bf16 --output own.cpp", 0, "wrote own.cpp and own.h");
  Ended built = call("devices >/dev/null && c++ -O2 -c own.cpp -o own.o");
  EXPECT_EQ(built.code, 0) << built.out;
  EXPECT_EQ(built.out, "") << "not even a warning";
  expect("eject softmax --name other --output other.cpp", 0, "wrote other.cpp and other.h");
  write("both.cpp", "#include \"own.h\"\n#include \"other.h\"\n");
  built = call("devices >/dev/null && c++ -shared -fPIC both.cpp own.cpp other.cpp -o both.so");
  EXPECT_EQ(built.code, 0) << built.out;
  expect("eject gemm --option epilogue=bias --isa neon --threads 4 --output arm.cpp", 0,
         "gemm k=1024,m=1024,n=1024 f32 epilogue=bias out=same precision=ieee tile=64x64, neon");
  expect("eject softmax --shape m=65536,n=4096 --output large.cpp", 0,
         "g++ -std=c++17 -O2 -c large.cpp");
  expect("eject gemm --shape m=8,n=8,k=8 --name small --output small.cpp", 0, "wrote small.cpp");
  EXPECT_NE(read("small.h").find("int small("), std::string::npos);
  EXPECT_NE(read("small.h").find("tiles were chosen for k=8,m=8,n=8 f32"), std::string::npos);
  auto streams = [&](const char* file) {
    return read(file).find("around the caches") != std::string::npos;
  };
  expect("eject softmax --device sm_90a --output gpu.cu", 0,
         "nvcc -std=c++17 -arch=sm_90a -c gpu.cu");
  EXPECT_NE(read("gpu.h").find("cudaError_t softmax("), std::string::npos);
  EXPECT_FALSE(streams("own.h"));
  EXPECT_TRUE(streams("large.h") || !__builtin_cpu_supports("avx2"));
}

}  // namespace tw
