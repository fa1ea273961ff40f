// SPDX-License-Identifier: BSD-2-Clause
// How is a shared library used that may not be installed?
#include "os/library.h"

#include <dlfcn.h>

#include <cerrno>

namespace weft::os {

Result<Library> Library::open(const char* name) {
  void* const handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle != nullptr) return Library(handle);
  const char* const why = ::dlerror();
  return Error{ENOSYS, why != nullptr ? why : name};
}

void* Library::address_of(const char* name) const { return ::dlsym(handle_, name); }

}  // namespace weft::os
