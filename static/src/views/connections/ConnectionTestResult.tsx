/** What a test of a connection found, and what to do about it. */
import type { ConnectionTest } from "../../api/types.ts";
import { Icon } from "../../components/Icon.tsx";
import { figure } from "../../texts/times.ts";
import { texts } from "../../texts/texts.ts";

/** Each finding on its own line, good or bad by mark and word. */
export function Verdict({ verdict }: { verdict: ConnectionTest }) {
  const t = texts.verdict;
  const isGood = verdict.reachable && verdict.authorized && verdict.error === undefined;
  const { reachable, authorized, models, context_size } = verdict;
  return (
    <div class={isGood ? "verdict good" : "verdict bad"} role="status">
      <p class="verdict-title">
        <Icon name={isGood ? "check" : "warning"} />
        <strong>{isGood ? t.good : t.bad}</strong>
      </p>
      <ul>
        <li>{reachable ? `${t.reachable}, ${t.latency(Math.round(verdict.latency_ms))}` : t.unreachable}</li>
        {reachable && <li>{authorized ? t.authorized : t.unauthorized}</li>}
        {reachable && authorized && <li>{t.models(models.length)}</li>}
        {context_size !== undefined && <li>{t.context(figure(context_size))}</li>}
      </ul>
      {verdict.error && <p>{verdict.error}</p>}
      {verdict.advice && <p class="advice">{verdict.advice}</p>}
    </div>
  );
}
