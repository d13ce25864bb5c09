/** The messages in order. Follows the end while the reader is there, loads more on scrolling. */
import { effect } from "@preact/signals";
import { Fragment } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { asApiError } from "../../../api/client.ts";
import { Button } from "../../../components/Button.tsx";
import { Icon } from "../../../components/Icon.tsx";
import { lazy } from "../../../components/Lazy.tsx";
import { Sentences } from "../../../markdown/sentences.ts";
import { splitReasoning } from "../../../state/chat/message_text.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { getRegexDisplay, type RegexDisplay } from "../../../state/chat/regex_display.ts";
import { useStore } from "../../../state/store.ts";
import { loadLater } from "../../../texts/en/en.ts";
import { texts } from "../../../texts/texts.ts";
import { MessageView } from "./MessageView.tsx";
import { usePrint } from "./print_chat.ts";
import { useFollowEnd, useJumpTarget } from "./scroll_position.ts";

const ChatBackground = lazy(() => import("../ChatBackground.tsx").then((file) => file.ChatBackground), {
  as: "overlay",
});

const ScriptConsent = lazy(() => import("./ScriptConsent.tsx").then((file) => file.ScriptConsent), { as: "overlay" });

const MemoryLine = lazy(() => import("./MemoryLine.tsx").then((file) => file.MemoryLine), { as: "overlay" });

/** Distance to an end of the list at which more is loaded, so that readers seldom reach it. */
const AHEAD = "1200px 0px";

/** The scroll container. */
export function MessageList({ chat }: { chat: OpenChat }) {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const follow = useFollowEnd(chat, box, content);
  const stepBack = useLoadOlder(chat, follow.hold);
  useJumpTarget(chat, content, follow.leave, follow.onScroll);
  usePrint(chat, content);
  const { hasAbove, hasBelow, shown } = chat.window;
  const lastId = chat.lastMessage.value?.id;
  const { hidden } = chat.tools.value;
  const background = useBackground(chat);
  const display = useRegexScripts(chat);
  const memoryStart = chat.pages.items.value.findLast(({ context_use }) => context_use)?.context_use?.first_message_id;
  return (
    <>
      <div class="message-area">
        {background && <ChatBackground url={background} />}
        <div
          class="message-scroll"
          ref={box}
          onScroll={follow.onScroll}
          tabIndex={0}
          role="region"
          aria-label={texts.chat.log}
        >
          <div class="column messages" ref={content} role="log" aria-live="off" aria-label={texts.chat.log}>
            {hasAbove.value && <LoadMore key="above" box={box} label={texts.chat.earlier} onNear={stepBack} />}
            {shown.value.map((message) =>
              hidden.has(message.id) ? null : (
                <Fragment key={message.id}>
                  {message.id === memoryStart && <MemoryLine chat={chat} />}
                  <MessageView chat={chat} message={message} isLast={message.id === lastId} />
                </Fragment>
              )
            )}
            {hasBelow.value && (
              <LoadMore
                key="below"
                box={box}
                label={texts.chat.later}
                onNear={() => chat.window.moreBelow()}
              />
            )}
          </div>
        </div>
        {follow.isScrolledUp && (
          <button type="button" class="jump" onClick={follow.jump}>
            <Icon name="down" />
            {texts.chat.latest}
            {follow.newCount > 0 && <span class="jump-count">{texts.chat.latestWith(follow.newCount)}</span>}
          </button>
        )}
        <Announcer chat={chat} memoryStart={memoryStart} />
      </div>
      {display.undecided.value.length > 0 && <ScriptConsent display={display} />}
    </>
  );
}

/** Follows the regex scripts of the chat, and asks for the texts that they change. */
function useRegexScripts(chat: OpenChat): RegexDisplay {
  const store = useStore();
  const display = getRegexDisplay(chat, store.api.client);
  const { participants, preset_id, model } = chat.options.value;
  const ids = participants?.map(({ character_id }) => character_id).join();
  useEffect(() => void display.load(), [chat, chat.isNew, ids, preset_id, model]);
  useEffect(() => store.listen((event) => display.onChange(event)), [display]);
  useEffect(() => effect(() => void display.request(chat.window.shown.value)), [display]);
  const switchedOff = display.switchedOff.value;
  useEffect(() => {
    if (switchedOff.length === 0) return;
    const say = () => store.toasts.show(texts.regexScripts.switchedOff(switchedOff.at(-1)!), { isError: true });
    loadLater().then(say, () => {});
  }, [switchedOff]);
  return display;
}

/** An attachment. URLs of other servers, which an imported chat may contain, are ignored. */
const ATTACHMENT_URL = /^\/api\/attachments\/[\w-][\w.-]*$/;

/** Returns the URL of the image behind the chat. There is none if data is to be saved. */
function useBackground(chat: OpenChat): string | undefined {
  const { preferences } = useStore();
  const url = chat.options.value.background ?? preferences.settings.value?.chat_background;
  return url && ATTACHMENT_URL.test(url) && !isSavingData() ? url : undefined;
}

/** Not in every browser. @see https://developer.mozilla.org/docs/Web/API/NetworkInformation/saveData */
function isSavingData(): boolean {
  const { connection } = navigator as Navigator & { connection?: { saveData?: boolean } };
  return connection?.saveData === true || matchMedia("(prefers-reduced-data: reduce)").matches;
}

/** An end of the list with more beyond it: loaded when near, or on click. */
function LoadMore(
  { box, label, onNear }: { box: { current: HTMLElement | null }; label: string; onNear: () => Promise<void> | void },
) {
  const mark = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let isNear = false;
    let isBusy = false;
    const go = async () => {
      if (isBusy) return;
      isBusy = true;
      await onNear();
      isBusy = false;
      // What was loaded may be too short; the observer only reports changes.
      if (isNear) setTimeout(() => isNear && go(), 50);
    };
    const observer = new IntersectionObserver((entries) => {
      // On a busy page several arrive at once; the last one counts.
      isNear = entries.at(-1)!.isIntersecting;
      if (isNear) void go();
    }, { root: box.current, rootMargin: AHEAD });
    observer.observe(mark.current!);
    return () => {
      isNear = false;
      observer.disconnect();
    };
  }, []);
  return (
    <div class="more-messages" ref={mark}>
      <Button kind="quiet" onClick={() => void onNear()}>{label}</Button>
    </div>
  );
}

/** Returns a function that shows earlier messages without moving the reader. */
function useLoadOlder(chat: OpenChat, hold: () => void): () => Promise<void> {
  const first = chat.window.shown.value[0]?.id;
  useLayoutEffect(hold, [first]);
  return async () => {
    try {
      await chat.window.moreAbove();
    } catch (thrown) {
      chat.problem.value = asApiError(thrown);
    }
  };
}

/** Number of sentences to keep in the live region. Older ones have been announced. */
const MAX_LINES = 6;

/** A hidden live region. The message list itself is silent, since it changes with every token. */
function Announcer({ chat, memoryStart }: { chat: OpenChat; memoryStart: string | undefined }) {
  const [lines, setLines] = useState<{ id: number; text: string }[]>([]);
  const run = chat.replies.run.value;
  // Where it was when the chat was opened isn't news.
  const announcedStart = useRef(memoryStart);
  useEffect(() => {
    if (run || memoryStart === announcedStart.current) return;
    announcedStart.current = memoryStart;
    if (memoryStart === undefined) return;
    const say = () =>
      setLines((before) => [...before, { id: -Date.now(), text: texts.memoryLine.label }].slice(-MAX_LINES));
    loadLater().then(say, () => {});
  }, [memoryStart, run]);
  useEffect(() => {
    if (!run) return;
    let nextId = Date.now();
    const say = (text: string) => {
      if (text !== "") setLines((before) => [...before, { id: nextId++, text }].slice(-MAX_LINES));
    };
    // Reasoning is collapsed for everyone.
    let start = run.calls.peek().at(-1)?.textLength;
    const getText = () => splitReasoning(run.text.peek().slice(start)).text;
    // What came between the first word and the first frame of the list is news, too.
    let sentences = new Sentences(texts.chat.spoken, splitReasoning(run.joinedText.slice(start)).text);
    const endPhase = run.phase.subscribe((phase) => {
      if (phase === "waiting") say(texts.chat.waitingPlain);
      if (phase === "reconnecting") say(texts.chat.reconnecting);
      if (phase === "unsent") say(texts.unsent.title);
    });
    const announced = new Map<string, string | undefined>();
    const endCalls = run.calls.subscribe((calls) => {
      const last = calls.at(-1)?.textLength;
      if (last !== start) {
        say(sentences.next(getText(), true));
        start = last;
        sentences = new Sentences(texts.chat.spoken, getText());
      }
      for (const { call } of calls) {
        if (announced.get(call.id) === call.state) continue;
        announced.set(call.id, call.state);
        if (call.state === "pending") say(texts.chat.callPending(call.tool_name ?? call.name));
        if (call.state === "running") say(texts.chat.callRunning(call.tool_name ?? call.name));
      }
    });
    const endText = run.text.subscribe(() => say(sentences.next(getText(), false)));
    return () => {
      endText();
      endCalls();
      endPhase();
      say(sentences.next(getText(), true));
    };
  }, [run]);
  const ended = chat.replies.ended.value;
  // One that ended before the list was shown isn't news.
  const announcedEnd = useRef(ended);
  useEffect(() => {
    if (!ended || ended === announcedEnd.current) return;
    announcedEnd.current = ended;
    const say = ({ announceEnding }: typeof import("../../../state/chat/reply_ending.ts")) => {
      const text = announceEnding(ended);
      if (text !== "") setLines((before) => [...before, { id: Date.now() + 0.5, text }].slice(-MAX_LINES));
    };
    import("../../../state/chat/reply_ending.ts").then(say, () => {});
  }, [ended]);
  return (
    <div class="visually-hidden" aria-live="polite" aria-relevant="additions">
      {lines.map((line) => <p key={line.id}>{line.text}</p>)}
    </div>
  );
}
