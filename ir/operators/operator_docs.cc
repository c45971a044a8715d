#include "ir/operators/operator_docs.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/operators/operator_table.h"

namespace svod {
namespace {

constexpr absl::string_view kIntroduction =
    R"(# Operators

Composite operators, each a composition of the ops of [text.md](text.md) and a function of a header
in `ir/operators/`. Graphs call them like ops: operands, then attributes by name.

```
%y = softmax(%x, axis=-1)
%values, %positions = top_k(%x, count=5)
%c = conv(%x, %weight, %bias, stride=2, padding=[1, 1])
```

What holds for all: axes count from 0, negative ones from the end. Dimensions may be symbolic
wherever a row does not ask for a constant. Operands have one dtype unless a row says otherwise;
nothing is promoted but what a row names. f16 and bf16 are worked out in f32 and rounded once.
Attributes without a default must be given; `axes`, `dtype` and others with an empty one may be left
out. Ops (`add`, `exp`, `where`, `reshape`, ...) are called in the same way; text.md has them.

In the tables `a=1` shows a default, `a=?` an attribute that may be left out, `a=!` one that must be
given; an operand `b?` may be left out, `x...` is one or more.

This page is written by `OperatorsMarkdown` (`ir/operators/operator_docs.h`) from the operator table.
)";

// Characters that would end a cell.
std::string Cell(absl::string_view text) {
  std::string cell;
  for (char c : text) {
    if (c == '|') cell.push_back('\\');
    cell.push_back(c);
  }
  return cell;
}

std::string Usage(const OperatorInfo& info) {
  std::string usage;
  for (absl::string_view operand : absl::StrSplit(info.operands, ", ", absl::SkipEmpty())) {
    absl::StrAppend(&usage, usage.empty() ? "" : ", ", operand);
  }
  for (const AttributeInfo& attribute : info.attributes) {
    absl::StrAppend(&usage, usage.empty() ? "" : ", ", attribute.name);
    if (attribute.default_text != nullptr) {
      absl::StrAppend(&usage, "=", *attribute.default_text == '\0' ? "?" : attribute.default_text);
    } else {
      absl::StrAppend(&usage, "=!");
    }
  }
  return absl::StrCat("`", info.name, usage.empty() ? "" : " ", usage, "`");
}

}  // namespace

std::string OperatorsMarkdown() {
  std::string page(kIntroduction);
  absl::string_view section;
  for (const OperatorInfo& info : Operators()) {
    if (section != info.section) {
      section = info.section;
      absl::StrAppend(
          &page, "\n## ", section,
          "\n\n| operator | results | meaning | shapes and dtypes |\n|---|---|---|---|\n");
    }
    absl::StrAppend(&page, "| ", Cell(Usage(info)), " | ", info.results, " | ", Cell(info.meaning),
                    " | ", Cell(info.shapes), " |\n");
  }
  return page;
}

}  // namespace svod
