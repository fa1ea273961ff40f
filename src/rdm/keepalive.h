// SPDX-License-Identifier: BSD-2-Clause
// How is a peer's death noticed without asking all the time?
//
// Each context has a time of its next check. A peer with operations outstanding is probed after a
// short silence; an idle one less and less often. A probe without an answer is repeated: the host
// of a dead process answers it with ICMP port unreachable. One probe and its answer prove to both
// ends that the other is alive, for all flows between them.
#pragma once

#include "flow_table.h"

namespace weft::rdm {

// The context is in use at that time: its peer is looked after soon.
void hasten(Context& context, Watches& watches, os::Time now);

// Looks at the contexts whose time has come: probes their peers, or ends their flows.
void look_at_silent_peers(FlowTable& flows, Shared& shared);

}  // namespace weft::rdm
