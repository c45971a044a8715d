# LLVM: IR, code generation, ORC. Target: svod_llvm, to be linked PRIVATE by jit/ alone.
#
# "22" alone would read as 22.0 and match nothing: LLVM's version file wants equal major.minor.
find_package(LLVM 22.1 CONFIG REQUIRED HINTS /usr/lib/llvm-22)
if(NOT TARGET LLVM)
  message(FATAL_ERROR "llvm: ${LLVM_DIR} has no shared libLLVM, expected one (llvm-22-dev)")
endif()

# The flags of llvm-config are left alone on purpose: -fno-exceptions and -fno-rtti would
# reach TBB and googletest, and this LLVM is built with RTTI.
add_library(svod_llvm INTERFACE IMPORTED GLOBAL)
target_include_directories(svod_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
separate_arguments(SVOD_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_definitions(svod_llvm INTERFACE ${SVOD_LLVM_DEFINITIONS})

# Programs that ask for it (set_target_properties(... SVOD_STATIC_LIBRARIES ON)) take the parts that jit/
# uses from LLVM's archives: loading and relocating the shared library is most of the life of a
# process that runs one kernel.
set(SVOD_LLVM_ARCHIVES
  LLVMAArch64AsmParser LLVMAArch64CodeGen LLVMOrcDebugging LLVMOrcJIT LLVMTargetParser
  LLVMX86AsmParser LLVMX86CodeGen)
set(SVOD_HAVE_STATIC_LLVM ON)
foreach(library IN LISTS SVOD_LLVM_ARCHIVES ITEMS ZLIB::ZLIB zstd::libzstd_shared)
  if(NOT TARGET ${library})
    set(SVOD_HAVE_STATIC_LLVM OFF)
  endif()
endforeach()
if(SVOD_HAVE_STATIC_LLVM)
  target_link_libraries(svod_llvm INTERFACE
    "$<IF:$<BOOL:$<TARGET_PROPERTY:SVOD_STATIC_LIBRARIES>>,${SVOD_LLVM_ARCHIVES},LLVM>")
else()
  target_link_libraries(svod_llvm INTERFACE LLVM)
endif()
