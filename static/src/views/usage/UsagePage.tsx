/** Settings, Usage: what models answered, how fast and at what cost, as charts and in tables. */
import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { ModelPrice, ModelUsage, UsageReport, UsageSums, UsageTotal } from "../../api/types.ts";
import { usageApi } from "../../api/usage.ts";
import { CancelButton, Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button, IconButton, LinkButton } from "../../components/Button.tsx";
import { NumberInput, Select } from "../../components/forms/inputs.tsx";
import { EmptyState, ErrorNote } from "../../components/Notice.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { useStore } from "../../state/store.ts";
import { formatNumber } from "../../texts/format.ts";
import { formatCount } from "../../texts/quantities.ts";
import { texts } from "../../texts/texts.ts";
import { useAction, useResource } from "../hooks.tsx";
import { formatCost, formatDate, formatSeconds, listFigures } from "./usage_figures.ts";
import { toBars, UsageChart } from "./UsageChart.tsx";

const RANGES = ["7", "30", "90", "365"] as const;

/** The page. */
export function UsagePage() {
  const store = useStore();
  const calls = useMemo(() => usageApi(store.api.client), []);
  const [range, setRange] = useState<typeof RANGES[number]>("30");
  const days = useRef(Number(range));
  const { value, error, again } = useResource(() => calls.read(days.current), "reply_ended", "usage");
  const prices = useResource(() => calls.listPrices(), "usage");
  const [priced, setPriced] = useState<ModelUsage>();
  const [isAsking, setAsking] = useState(false);
  const t = texts.usage;
  const choose = (range: typeof RANGES[number]) => {
    setRange(range);
    days.current = Number(range);
    again();
  };
  const clear = () => {
    setAsking(false);
    calls.clear().then(() => {
      again();
      store.toasts.show(t.deleted);
    }, (thrown) => store.report(thrown));
  };
  const findPrice = (model: ModelUsage) =>
    prices.value?.find((price) => price.connection_id === model.connection_id && price.model === model.model);
  return (
    <section class="settings-parts usage">
      <h2>{t.title}</h2>
      <div class="settings-part">
        <p class="muted">{t.intro}</p>
        <Select
          label={t.range}
          value={range}
          options={RANGES.map((value) => ({ value, name: t.lastDays(Number(value)) }))}
          onChange={choose}
        />
        {error && <ErrorNote title={t.failed} error={error} onRetry={again} />}
        {prices.error && <ErrorNote title={t.failed} error={prices.error} onRetry={prices.again} />}
        {value === undefined && !error && <p class="muted" role="status">{texts.loading}</p>}
      </div>
      {value?.models.length === 0 && (
        <EmptyState level={3} title={t.none} text={t.noneText}>
          <LinkButton href="/new" kind="primary">{texts.nav.newChat}</LinkButton>
        </EmptyState>
      )}
      {value && value.models.length > 0 && (
        <>
          <Sums total={value.total} />
          <Charts report={value} />
          <Models models={value.models} findPrice={findPrice} onPrice={setPriced} />
          <Days report={value} />
          <section class="settings-part" aria-labelledby="usage-delete">
            <h3 id="usage-delete" tabIndex={-1}>{t.delete}</h3>
            <p class="muted">{t.deleteHint}</p>
            <div class="actions-row">
              <Button icon="trash" onClick={() => setAsking(true)}>{t.delete}</Button>
            </div>
          </section>
        </>
      )}
      {priced && (
        <PriceDialog
          model={priced}
          price={findPrice(priced)}
          onClose={() => setPriced(undefined)}
          onSave={async (price) => {
            await calls.setPrice({ connection_id: priced.connection_id, model: priced.model }, price);
            setPriced(undefined);
            prices.again();
            again();
          }}
        />
      )}
      {isAsking && (
        <Dialog
          title={t.askDelete}
          onClose={() => setAsking(false)}
          actions={
            <>
              <Button onClick={() => setAsking(false)}>{texts.cancel}</Button>
              <Button kind="primary" onClick={clear}>{t.delete}</Button>
            </>
          }
        >
          <p>{t.askDeleteText}</p>
        </Dialog>
      )}
    </section>
  );
}

function Sums({ total }: { total: UsageTotal }) {
  const t = texts.usage;
  return (
    <section class="settings-part" aria-labelledby="usage-total">
      <h3 id="usage-total">{t.total}</h3>
      <dl class="usage-sums">
        {listFigures(total).map(([name, figure]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{figure}</dd>
          </div>
        ))}
      </dl>
      {total.uncounted_calls > 0 && <p class="muted">{t.uncounted(total.uncounted_calls)}</p>}
    </section>
  );
}

function Charts({ report: { days, total } }: { report: UsageReport }) {
  const t = texts.usage;
  const sum = (read: (total: UsageSums) => number) =>
    toBars(days, (own) => own.reduce((sum, { total }) => sum + read(total), 0));
  return (
    <section class="settings-part" aria-labelledby="usage-charts">
      <h3 id="usage-charts">{t.overTime}</h3>
      <div class="usage-charts">
        <UsageChart
          title={t.replies}
          bars={sum(({ replies }) => replies)}
          format={formatNumber}
          describe={t.highest}
        />
        <UsageChart
          title={texts.messageDetails.promptTokens}
          bars={sum(({ prompt_tokens }) => prompt_tokens)}
          format={formatCount}
          describe={t.highest}
        />
        <UsageChart
          title={texts.messageDetails.replyTokens}
          bars={sum(({ completion_tokens }) => completion_tokens)}
          format={formatCount}
          describe={t.highest}
        />
        {total.cost !== null && (
          <UsageChart
            title={t.cost}
            bars={sum(({ cost }) => cost ?? 0)}
            format={formatCost}
            describe={t.highest}
          />
        )}
      </div>
    </section>
  );
}

function Models(
  { models, findPrice, onPrice }: {
    models: readonly ModelUsage[];
    findPrice: (model: ModelUsage) => ModelPrice | undefined;
    onPrice: (model: ModelUsage) => void;
  },
) {
  const t = texts.usage;
  const getName = ({ model }: ModelUsage) => model || t.otherModels;
  return (
    <div class="settings-part">
      <h3 id="usage-models" tabIndex={-1}>{t.byModel}</h3>
      <UsageTable label={t.byModel} first={texts.messageDetails.model} isPriced>
        {models.map((model) => (
          <tr key={`${model.connection_id} ${model.model} ${model.kind}`}>
            <th scope="row">
              {getName(model)}
              <span class="usage-about">
                {[model.connection_name, t.kinds[model.kind]].filter(Boolean).join(" · ")}
              </span>
            </th>
            <Figures sums={model} />
            <td>
              {model.model !== "" && (
                <IconButton
                  icon="pencil"
                  label={(findPrice(model) ? t.changePriceOf : t.setPriceOf)(getName(model))}
                  onClick={() => onPrice(model)}
                />
              )}
            </td>
          </tr>
        ))}
      </UsageTable>
      <p class="muted">{t.priceHint}</p>
    </div>
  );
}

/** Days without usage are left out. The newest comes first. */
function Days({ report: { days } }: { report: UsageReport }) {
  const t = texts.usage;
  return (
    <div class="settings-part">
      <h3 id="usage-days">{t.byDay}</h3>
      <UsageTable label={t.byDay} first={t.day}>
        {days.filter(({ models }) => models.length > 0).reverse().map(({ date, total }) => (
          <tr key={date}>
            <th scope="row">{formatDate(date)}</th>
            <Figures sums={total} />
          </tr>
        ))}
      </UsageTable>
    </div>
  );
}

/** Scrolls sideways where it's too wide. */
function UsageTable(
  { label, first, isPriced, children }: {
    label: string;
    first: string;
    isPriced?: boolean;
    children: ComponentChildren;
  },
) {
  const t = texts.usage;
  return (
    <div class="usage-table" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {[first, t.replies, t.read, t.cached, t.written, t.firstWord, t.speed, t.cost].map((name) => (
              <th key={name} scope="col">{name}</th>
            ))}
            {isPriced && <th scope="col">{t.price}</th>}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

function Figures({ sums }: { sums: UsageSums }) {
  const { first_word_ms: firstWordMs, tokens_per_second: speed, cost } = sums;
  const figures = [
    formatNumber(sums.replies),
    formatNumber(sums.prompt_tokens),
    formatNumber(sums.cached_tokens),
    formatNumber(sums.completion_tokens),
    firstWordMs === null ? "–" : formatSeconds(firstWordMs),
    speed === null ? "–" : formatNumber(Math.round(speed * 10) / 10),
    cost === null ? "–" : formatCost(cost),
  ];
  return <>{figures.map((figure, index) => <td key={index}>{figure}</td>)}</>;
}

function PriceDialog(
  { model, price, onClose, onSave }: {
    model: ModelUsage;
    price: ModelPrice | undefined;
    onClose: () => void;
    onSave: (price: Omit<ModelPrice, "connection_id" | "model"> | null) => Promise<void>;
  },
) {
  const t = texts.usage;
  const [prompt, setPrompt] = useState(price?.prompt);
  const [completion, setCompletion] = useState(price?.completion);
  const [cached, setCached] = useState(price?.cached);
  const draft = useFormDraft(`price:${model.connection_id}:${model.model}`);
  const saving = useAction(async () => {
    await onSave({ prompt: prompt ?? 0, completion: completion ?? 0, ...(cached !== undefined && { cached }) });
    draft.clear();
  });
  const removing = useAction(() => onSave(null));
  const isEmpty = prompt === undefined && completion === undefined;
  const failure = saving.failure ?? removing.failure;
  const limits = { min: 0, max: 1_000_000, isWhole: false };
  return (
    <Dialog
      title={t.setPriceOf(model.model)}
      onClose={onClose}
      actions={
        <>
          {price && <Button icon="trash" onClick={() => void removing.run()}>{t.removePrice}</Button>}
          <CancelButton draft={draft} onCancel={onClose} kind="plain" />
          <Button kind="primary" isDisabled={isEmpty} isBusy={saving.isBusy} onClick={() => void saving.run()}>
            {texts.save}
          </Button>
        </>
      }
    >
      <div class="form">
        <p class="muted">{t.priceText}</p>
        <Drafted draft={draft}>
          <NumberInput {...limits} label={t.pricePrompt} value={prompt} onChange={setPrompt} />
          <NumberInput {...limits} label={t.priceCompletion} value={completion} onChange={setCompletion} />
          <NumberInput {...limits} label={t.priceCached} hint={t.priceCachedHint} value={cached} onChange={setCached} />
        </Drafted>
        {failure && <p class="field-error" role="alert">{failure}</p>}
      </div>
    </Dialog>
  );
}
