# Writes OUT: a function that returns a hash of every source that decides what kernels become. It is part of every cache
# key, so a changed pass or prelude never meets what an older one compiled.
cmake_minimum_required(VERSION 3.25)
file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/tw/*)
list(FILTER sources INCLUDE REGEX "^tw/(num|math|layout|target|ir|passes|emit|jit)/.*\\.(h|cpp|def)$")
list(SORT sources)
set(all "")
foreach(source IN LISTS sources)
  file(SHA256 ${ROOT}/${source} hash)
  string(APPEND all "${source} ${hash}\n")
endforeach()
string(SHA256 hash "${all}")
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT
  "#include \"tw/jit/emitter_version.h\"\n\nnamespace tw {\nconst char* emitter_version() { return \"@hash@\"; }\n}  // namespace tw\n")
