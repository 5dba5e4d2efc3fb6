# The listings of docs/language.md, compiled and traced as printed.
set(page ${CMAKE_SOURCE_DIR}/docs/language.md)
set(guide ${CMAKE_CURRENT_BINARY_DIR}/guide.cpp)
add_custom_command(OUTPUT ${guide}
  DEPENDS ${page} ${CMAKE_CURRENT_SOURCE_DIR}/lang/guide.py
  COMMAND ${TW_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/lang/guide.py ${page} ${guide})
add_executable(guide ${guide})
target_link_libraries(guide PRIVATE tw_lang)
add_test(NAME lang_guide COMMAND guide)
set_tests_properties(lang_guide PROPERTIES PASS_REGULAR_EXPRESSION "traced 13 listings")
