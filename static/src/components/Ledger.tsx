/** What a file contains besides what was read from it: one line, which opens to the whole list. */
import { translateLedger, useServerTexts } from "../texts/server_texts.ts";
import { formatNumber } from "../texts/format.ts";
import { texts } from "../texts/texts.ts";

/** One kind of thing. */
export interface LedgerLine {
  kind: string;
  text: string;
  /** Names or places of the first ones. */
  examples: readonly string[];
}

/** Renders nothing without lines. @param props.first The line that is always visible. */
export function Ledger({ lines, first = lines[0] }: { lines: readonly LedgerLine[]; first?: LedgerLine }) {
  if (first === undefined) return null;
  const others = lines.length - 1;
  if (others === 0 && first.examples.length === 0) return <p class="ledger muted">{first.text}</p>;
  return (
    <details class="ledger muted">
      <summary>{first.text}{others > 0 && ` ${texts.documents.ledgerMore(others)}`}</summary>
      <ul>
        {lines.map(({ kind, text, examples }) => (
          <li key={kind}>
            {text}
            {examples.length > 0 && `: ${examples.join(", ")}`}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** What a card, preset or lorebook has besides what Parlor uses. */
export function ItemLedger(
  { entries = [] }: { entries?: { kind: string; count: number; reason: string; examples?: string[] }[] },
) {
  const serverTexts = useServerTexts();
  const lines = entries.map((entry): LedgerLine => ({
    kind: entry.kind,
    text: `${formatNumber(entry.count)} × ${translateLedger(serverTexts, entry)}`,
    examples: entry.examples ?? [],
  }));
  return <Ledger lines={lines} />;
}
