// RewriteConvolutions: 3 x 3 convolutions by Winograd's forms, with fewer products.
// Included by schedule.cc, the importer of models and tests. Must not know kernels.
#ifndef SVOD_PLAN_WINOGRAD_H_
#define SVOD_PLAN_WINOGRAD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/program.h"

namespace svod {

// Rewrites the sums of products of `graph`, a tensor graph of `context`, that are convolutions with
// windows of 3 x 3 neighbours in f32 without groups, wherever a form of winograd_form.h gains and
// its error bound is at most `max_error`; each becomes
//   patches of the picture, channels innermost, transformed: [n * n, tiles, channels]
//   transformed weights:                                     [n * n, channels, outputs]
//   n * n products of the two, transformed to tiles of results,
// and what follows it follows that. They are known by how the elements of the two factors move with
// the loops of the sum, however the graph writes that down; pictures may be as many as a variable
// says, all other sizes are constant. `constants`: PARAMs whose values never change, so that the
// transform of weights made of them alone costs nothing. Gives how many were rewritten; at 0 the
// graph is as it was. Errors: those of ShapeAnalysis. Cost: linear in nodes.
absl::StatusOr<int> RewriteConvolutions(Function* graph, std::shared_ptr<Context> context,
                                        double max_error,
                                        absl::Span<const UOp* const> constants = {});

}  // namespace svod

#endif  // SVOD_PLAN_WINOGRAD_H_
