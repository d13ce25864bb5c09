/** What a card says of where it came from and what it names; V3 leaves that to programs, so it is only shown. */
import type { CardData } from "../../api/types.ts";
import { fullMoment } from "../../texts/times.ts";
import { texts } from "../../texts/texts.ts";

/** Nothing where the card says nothing of the kind. */
export function CardOrigin({ data }: { data: CardData }) {
  const t = texts.editor;
  const source = listOf(data.source).filter((one) => typeof one === "string");
  const assets = listOf(data.assets).map(nameOf).filter((name) => name !== "");
  const dates = ([["creation_date", data.creation_date], ["modification_date", data.modification_date]] as const)
    .flatMap(([field, seconds]) => isTime(seconds) ? [{ field, iso: new Date(seconds * 1000).toISOString() }] : []);
  if (source.length + assets.length + dates.length === 0) return null;
  return (
    <section>
      <h2>{t.origin}</h2>
      <dl class="facts">
        {source.length > 0 && (
          <>
            <dt>{t.fields.source}</dt>
            <dd>{source.map((one) => <div key={one}>{linkOf(one)}</div>)}</dd>
          </>
        )}
        {dates.map(({ field, iso }) => (
          <>
            <dt key={field}>{t.fields[field]}</dt>
            <dd>{fullMoment(iso)}</dd>
          </>
        ))}
        {assets.length > 0 && (
          <>
            <dt>{t.fields.assets}</dt>
            <dd>{assets.map((name, index) => <div key={index}>{name}</div>)}</dd>
          </>
        )}
      </dl>
    </section>
  );
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** V3: 0 is unknown. The last moment that a date can say bounds it. */
function isTime(value: unknown): value is number {
  return typeof value === "number" && value > 0 && value <= 8.64e12;
}

function nameOf(asset: unknown): string {
  const { type, name, ext } = (asset ?? {}) as Record<string, unknown>;
  return [type, name, ext].filter((part) => typeof part === "string" && part !== "").join(" · ");
}

function linkOf(text: string) {
  if (!/^https?:\/\//i.test(text)) return text;
  return <a href={text} target="_blank" rel="noopener noreferrer nofollow">{text}</a>;
}
