/** Creates the services of documents. */
import type { CloseHook } from "../async/lazy.ts";
import { Documents, type DocumentsDeps } from "./documents.ts";
import { PassageIndexes } from "./passage_index.ts";

/** The services of documents. */
export interface DocumentServices {
  documents: Documents;
  passages: PassageIndexes;
}

/** Creates the services. */
export function openDocuments(deps: DocumentsDeps, onClose: (hook: CloseHook) => void): DocumentServices {
  const documents = new Documents(deps);
  const passages = new PassageIndexes((id) => documents.readPages(id));
  onClose(() => passages.close());
  return { documents, passages };
}
