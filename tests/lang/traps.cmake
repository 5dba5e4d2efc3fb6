# What the language makes a compile error, with both compilers.
add_test(NAME lang_traps
  COMMAND ${TW_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/lang/traps_test.py ${CMAKE_SOURCE_DIR})
