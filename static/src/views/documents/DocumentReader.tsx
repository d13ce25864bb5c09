/** The text of a document by pages, with a search. Pages to send can be chosen in it. */
import { findTerms, foldForSearch } from "../../../../services/json/search_fold.ts";
import { useEffect, useRef, useState } from "preact/hooks";
import { CancelButton, Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { Notice } from "../../components/Notice.tsx";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { StoredDocument } from "../../api/types.ts";
import { formatPageList, parsePageList } from "../../state/chat/attachments.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

interface Page {
  n: number;
  text: string;
}

/** Lets the user choose pages. */
export interface PageChoice {
  /** Number of pages of the document. */
  count: number;
  unit: StoredDocument["unit"];
  /** Pages chosen so far, such as `3-5,12`. */
  pages: string;
  /** Gets the chosen pages; `""` for none. */
  onChoose: (pages: string) => void;
}

/** Pages shown at once; more follow on request. */
const SHOWN = 50;

/** Shows a document. @param page The page to start with. */
export function DocumentReader(
  { id, name, page, choice, onClose }: {
    id: string;
    name: string;
    page?: number;
    choice?: PageChoice;
    onClose: () => void;
  },
) {
  const { api } = useStore();
  const [loaded, setLoaded] = useState<{ unit: StoredDocument["unit"]; pages: Page[] }>();
  const [problem, setProblem] = useState<ApiError>();
  const [words, setWords] = useState("");
  const [count, setCount] = useState(Math.max(SHOWN, page ?? 0));
  const [written, setWritten] = useState((choice?.pages ?? "").replaceAll(",", ", "));
  const draft = useFormDraft(`pages:${id}`);
  const list = useRef<HTMLDivElement>(null);
  const t = texts.documents;
  const pages = loaded?.pages;
  const unit = choice?.unit ?? loaded?.unit ?? "section";
  useEffect(() => {
    const abort = new AbortController();
    api.client.send("GET", `/api/documents/${encodeURIComponent(id)}/text`, { signal: abort.signal })
      .then((response) => response.json())
      .then(setLoaded)
      .catch((thrown) => abort.signal.aborted || setProblem(asApiError(thrown)));
    return () => abort.abort();
  }, [id]);
  useEffect(() => {
    if (page !== undefined) list.current?.querySelector(`[data-page="${page}"]`)?.scrollIntoView();
  }, [loaded]);
  const query = foldForSearch(words.trim());
  const found = pages?.filter(({ text }) => text !== "" && (query === "" || foldForSearch(text).includes(query)));
  const chosen = choice && parsePageList(written, choice.count);
  const toggle = (n: number, isChosen: boolean) => {
    const others = (chosen ?? []).filter((each) => each !== n);
    setWritten(formatPageList(isChosen ? [...others, n] : others).replaceAll(",", ", "));
  };
  // Around the dialog may be a form, which isn't meant.
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || !(event.target instanceof HTMLInputElement)) return;
    event.preventDefault();
    if (event.target.type !== "search") choose();
  };
  const choose = () => {
    if (choice === undefined || chosen === undefined || chosen.length === 0) return;
    draft.clear();
    choice.onChoose(formatPageList(chosen));
    onClose();
  };
  return (
    <Dialog
      title={name}
      onClose={onClose}
      actions={choice && (
        <>
          <CancelButton draft={draft} onCancel={onClose} />
          <Button kind="primary" isDisabled={chosen === undefined || chosen.length === 0} onClick={choose}>
            {t.sendPages[unit]}
          </Button>
        </>
      )}
    >
      {problem && <Notice tone="danger" title={t.loadFailed} error={problem} />}
      <div class="document-fields" onKeyDown={onKeyDown}>
        {choice && (
          <Drafted draft={draft}>
            <TextField
              label={t.pagesToSend[unit]}
              value={written}
              placeholder="3-5, 12"
              error={chosen === undefined ? t.badPages[unit](choice.count) : undefined}
              onInput={setWritten}
            />
          </Drafted>
        )}
        <TextField label={t.search} type="search" value={words} onInput={setWords} />
      </div>
      {pages === undefined && !problem && <p role="status">{texts.loading}</p>}
      {found?.length === 0 && <p role="status">{t.nothingFound}</p>}
      <div class="document-pages" ref={list} tabIndex={0}>
        {found?.slice(0, count).map(({ n, text }) => (
          <section key={n} data-page={n} aria-current={n === page ? "location" : undefined}>
            {choice
              ? (
                <label class="document-page-choice">
                  <input
                    type="checkbox"
                    checked={chosen?.includes(n) ?? false}
                    disabled={chosen === undefined}
                    onChange={(event) => toggle(n, event.currentTarget.checked)}
                  />
                  {t.pageNumber[unit](n)}
                </label>
              )
              : <h3>{t.pageNumber[unit](n)}</h3>}
            <p>{mark(text, query)}</p>
          </section>
        ))}
      </div>
      {found !== undefined && found.length > count && (
        <button
          type="button"
          class="button"
          onClick={() => setCount(count + SHOWN)}
        >
          {t.more}
        </button>
      )}
    </Dialog>
  );
}

function mark(text: string, query: string) {
  if (query === "") return text;
  const parts = [];
  let at = 0;
  for (const [start, end] of findTerms(text, [query])) {
    parts.push(text.slice(at, start), <mark key={start}>{text.slice(start, end)}</mark>);
    at = end;
  }
  return [...parts, text.slice(at)];
}
