/** Running replies and jobs, and recently ended ones. */
import { useState } from "preact/hooks";
import type { Job, RunningReply } from "../../api/types.ts";
import { Button, LinkButton } from "../../components/Button.tsx";
import { Icon } from "../../components/Icon.tsx";
import { EmptyState, ErrorNote } from "../../components/Notice.tsx";
import { Progress } from "../../components/Progress.tsx";
import { useNow, useTitle } from "../../components/hooks.ts";
import { List, ListRow } from "../../components/lists/List.tsx";
import { getGenerationPath } from "../../state/characters/character_generation.ts";
import { getImports, IMPORT_PATH, type Imports, type Upload } from "../../state/import_export/imports.ts";
import { getPullConnection } from "../../state/connections/connection_state.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatClock, formatTime } from "../../texts/format.ts";
import { formatProgress } from "../../texts/quantities.ts";
import { UnsentEntry } from "../chat/Unsent.tsx";
import { formatUpload, getUploadShare } from "../import_export/ImportProgress.tsx";
import { nameChat } from "../shell/chat_name.ts";
import { PageHeader } from "../shell/PageHeader.tsx";
import { useShares } from "../share/use_shares.ts";

/** Everything continues when this screen is left. */
export function ActivityScreen() {
  const store = useStore();
  const { activity, chats } = store;
  const moving = getImports(store);
  const t = texts.activity;
  useTitle(`${t.title} · ${texts.product}`);
  const { runningJobs, endedJobs, state, error } = activity;
  const replies = chats.replies.value;
  const sending = moving.sending.value;
  const waiting = useShares()?.length ?? 0;
  const unsent = store.outbox.entries.value;
  const isIdle = unsent.length + replies.length + runningJobs.value.length === 0 && !sending;
  return (
    <main id="main" class="page" tabIndex={-1}>
      <PageHeader title={t.title} />
      <div class="page-scroll">
        <div class="column page-sections">
          {error.value && <ErrorNote title={t.failed} error={error.value} onRetry={() => void activity.refresh()} />}
          {unsent.map((entry) => <UnsentEntry key={entry.key} entry={entry} />)}
          {waiting > 0 && (
            <List label={texts.share.title}>
              <ListRow title={texts.share.waiting(waiting)} href="/share" />
            </List>
          )}
          {isIdle && state.value === "ready" && (
            <EmptyState title={t.noneTitle} text={t.noneText}>
              <LinkButton href="/new" kind="primary">{texts.nav.newChat}</LinkButton>
            </EmptyState>
          )}
          {(replies.length + runningJobs.value.length > 0 || sending) && (
            <section>
              <h2>{t.running}</h2>
              <List label={t.running}>
                {replies.map((reply) => <ReplyRow key={reply.assistant_message_id} reply={reply} />)}
                {sending && <SendingRow moving={moving} sending={sending} />}
                {runningJobs.value.map((job) => <JobRow key={job.id} job={job} />)}
              </List>
            </section>
          )}
          {endedJobs.value.length > 0 && (
            <section>
              <h2>{t.ended}</h2>
              <List label={t.ended}>{endedJobs.value.map((job) => <JobRow key={job.id} job={job} />)}</List>
            </section>
          )}
        </div>
      </div>
    </main>
  );
}

/** Runs a request of a row. A failure shows a toast; the row shows the actual state. */
function useEnding(end: () => Promise<void>): { isBusy: boolean; run: () => void } {
  const store = useStore();
  const [isBusy, setBusy] = useState(false);
  const run = () => {
    setBusy(true);
    end().catch((thrown) => store.report(thrown)).finally(() => setBusy(false));
  };
  return { isBusy, run };
}

function ReplyRow({ reply }: { reply: RunningReply }) {
  const { activity, chats, people } = useStore();
  const now = useNow(true);
  const { isBusy, run } = useEnding(() => activity.stopReply(reply.assistant_message_id));
  const chat = chats.items.value.find((item) => item.id === reply.conversation_id);
  const title = chat ? nameChat(people, chat).full : texts.nav.untitled;
  const pending = reply.pending_calls ?? [];
  return (
    <ListRow
      title={title}
      text={pending.length > 0
        ? pending.map((call) => (
          <span key={call.id} class="waiting-call">{texts.chat.callPending(call.tool_name ?? call.name)}</span>
        ))
        : texts.activity.reply(formatClock(now - Date.parse(reply.started_at)))}
      href={`/c/${encodeURIComponent(reply.conversation_id)}#${encodeURIComponent(reply.assistant_message_id)}`}
      start={pending.length > 0 ? <Icon name="bell" /> : <span class="pulse" aria-hidden="true" />}
      end={
        <Button icon="stop" isBusy={isBusy} label={texts.activity.stopReply(title)} onClick={run}>
          {texts.activity.stop}
        </Button>
      }
    />
  );
}

/** An upload of an import, which only this page has. */
function SendingRow({ moving, sending }: { moving: Imports; sending: Upload }) {
  const title = texts.import.uploading(sending.name);
  return (
    <ListRow
      title={title}
      href={IMPORT_PATH}
      text={<Progress label={title} value={getUploadShare(sending)} text={formatUpload(sending)} />}
      end={
        <Button kind="quiet" label={texts.activity.cancelJob(title)} onClick={() => moving.cancel()}>
          {texts.cancel}
        </Button>
      }
    />
  );
}

/** Returns the page with details of a job. */
function getJobPath(job: Job): string | undefined {
  const paths: Record<string, string> = { import: IMPORT_PATH, backup: "/settings/data#backups" };
  const connectionId = getPullConnection(job);
  const connectionPath = connectionId && `/settings/connections/${encodeURIComponent(connectionId)}`;
  return connectionPath ?? getGenerationPath(job) ?? paths[job.kind];
}

function JobRow({ job }: { job: Job }) {
  const { activity } = useStore();
  const t = texts.activity;
  const { isBusy, run } = useEnding(() => activity.cancel(job.id));
  const canCancel = job.state === "queued" || job.state === "running";
  const isOver = !canCancel && job.state !== "verifying";
  const kind = Object.hasOwn(t.kinds, job.kind) ? t.kinds[job.kind as keyof typeof t.kinds] : undefined;
  const at = formatTime(isOver ? job.updated_at : job.created_at, new Date());
  const details = [kind, t.states[job.state], at].filter((part) => part !== undefined).join(" · ");
  const total = job.progress?.total;
  return (
    <ListRow
      title={job.title}
      href={getJobPath(job)}
      text={
        <>
          {details}
          {job.error && <span class="list-error">{job.error.message}</span>}
          {!isOver && job.state !== "queued" && (
            <Progress
              label={job.title}
              value={total ? (job.progress?.done ?? 0) / total : null}
              text={formatProgress(job.progress)}
            />
          )}
        </>
      }
      end={canCancel && (
        <Button kind="quiet" isBusy={isBusy} label={t.cancelJob(job.title)} onClick={run}>{texts.cancel}</Button>
      )}
    />
  );
}
