// SPDX-License-Identifier: BSD-2-Clause
// Protection domains: ibv_alloc_pd(3)
#include <cerrno>

#include "boundary.h"
#include "objects.h"

namespace weft::verbs {
namespace {

ibv_pd* alloc_pd(ibv_context* context) {
  return at_c_border<ibv_pd>([&] {
    auto domain = std::make_unique<VerbsPd>(context);
    domain->domain = VerbsContext::of(context).core().new_domain();
    return domain.release();
  });
}

int dealloc_pd(ibv_pd* pd) {
  if (pd == nullptr) return EINVAL;
  auto& domain = object_of(pd);
  if (const int error = check_handle(domain); error != 0) return error;
  if (domain.in_use()) return EBUSY;
  delete &domain;
  return 0;
}

}  // namespace
}  // namespace weft::verbs

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* context) { return weft::verbs::alloc_pd(context); }
int ibv_dealloc_pd(ibv_pd* pd) { return weft::verbs::dealloc_pd(pd); }

}  // extern "C"
