"""What scripts/conjecture.py does: the exports, tables, figures and pages of the study of docs/conjecture-plan.md."""
