// The front page: it is complete without this script.
import { enhance } from "./common";

enhance();
