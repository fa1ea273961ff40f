// SPDX-License-Identifier: BSD-2-Clause
// How is an operation put off until a counter has come to a value? fi_trigger(3)
#pragma once

#include <rdma/fi_trigger.h>

#include "handle.h"
#include "messaging/calls.h"

namespace weft::fabric {

// Each takes a call that was checked, with FI_TRIGGER among its flags, and keeps a copy: its
// buffers stay the program's, but with FI_INJECT, where that may change them at once. The call's
// context is a fi_triggered_context that says what is waited for; `work`, if it is not null, says
// that and how the end is reported instead. A `refusal` that is not null says why it must not be
// carried out (TransferRules::check()): that is reported when it would be started. Returns 0 or
// a negative fabric errno: -FI_EBADFLAGS where the endpoint has no FI_TRIGGER, -FI_EINVAL for what
// is waited for, -FI_ENOSYS for FI_TRIGGER_XPU.
ssize_t defer(Handle& handle, messaging::SendCall& call, std::uint64_t flags,
              const fi_deferred_work* work, const RefusedAccess* refusal) noexcept;
ssize_t defer(Handle& handle, messaging::ReceiveCall& call, std::uint64_t flags,
              const fi_deferred_work* work, const RefusedAccess* refusal) noexcept;
ssize_t defer(Handle& handle, messaging::AccessCall& call, std::uint64_t flags,
              const fi_deferred_work* work, const RefusedAccess* refusal) noexcept;
ssize_t defer(Handle& handle, messaging::AtomicCall& call, std::uint64_t flags,
              const fi_deferred_work* work, const RefusedAccess* refusal) noexcept;

// The calls of libfabric whose descriptor and flags an operation of deferred work holds, each in
// the file of its kind. With FI_TRIGGER among the flags `work` is obeyed; else it is null.
ssize_t send_message(Handle& handle, const fi_msg& msg, std::uint64_t flags,
                     const fi_deferred_work* work);
ssize_t receive_message(Handle& handle, const fi_msg& msg, std::uint64_t flags,
                        const fi_deferred_work* work);
ssize_t send_message(Handle& handle, const fi_msg_tagged& msg, std::uint64_t flags,
                     const fi_deferred_work* work);
ssize_t receive_message(Handle& handle, const fi_msg_tagged& msg, std::uint64_t flags,
                        const fi_deferred_work* work);
ssize_t access_memory(Handle& handle, bool write, const fi_msg_rma& msg, std::uint64_t flags,
                      const fi_deferred_work* work);
// `fetch` and `compare` are null where the form has none.
ssize_t change_memory(Handle& handle, const fi_msg_atomic& msg, const fi_msg_fetch* fetch,
                      const fi_msg_compare* compare, std::uint64_t flags,
                      const fi_deferred_work* work);

class Domain;

// fi_control(3) of a domain: FI_QUEUE_WORK, FI_CANCEL_WORK, FI_FLUSH_WORK. -FI_ENOSYS for others.
int control_work(Domain& domain, int command, void* argument);

}  // namespace weft::fabric
